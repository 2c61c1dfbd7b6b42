"""The egress proxy: the only way out of a sandbox's network, to the hosts that a command was allowed and no others.

    command ─ 127.0.0.1:PORT ─► Proxy ─ permitted? ─ resolve, check the address ─ right name in TLS? ─► host
          (the sandbox's network)  └──► refused, with a reason that says what to ask for

Each command with approved hosts has a proxy of its own, which lives as long as the command (`command_proxy`).
"""
