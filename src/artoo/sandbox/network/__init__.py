"""The egress proxy, which is the only connection out of a sandbox's network, and only to a command's allowed hosts.

    command ─ 127.0.0.1:PORT ─► Proxy ─ permitted? ─ resolve, check the address ─ right name in TLS? ─► host
          (the sandbox's network)  └──► refused, with a reason that names the missing permission

Each command with approved hosts has its own proxy, which runs as long as the command (`command_proxy`).
"""
