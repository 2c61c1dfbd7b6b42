"""The network of commands, with the parser of hosts, the egress proxy, and its variables.

    command ─ 127.0.0.1:PORT ─► Proxy ─ permitted? ─ resolve, check the address ─ right name in TLS? ─► host
          (the sandbox's network)  └──► refused, with a reason that names the missing permission

Each command with approved hosts has a proxy of its own, which runs as long as the command (`command_proxy`).
"""
