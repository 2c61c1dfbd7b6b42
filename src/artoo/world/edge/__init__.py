"""The sandbox's edge: the one way out of a command's own network, to the hosts that it was allowed and no others.

command ─ 127.0.0.1:3128 ─► Edge ─ permitted? ─ resolved, address checked ─ name in the TLS hello right? ─► host
          (its own network namespace)     └──► refused, with a reason that says what to ask for
"""
