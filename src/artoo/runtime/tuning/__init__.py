"""Proposals for the numbers of the control law, computed from the user's own task logs (docs/tune.md).

logs ──► records ──► the decisions of each law ──► the outcomes of comparable rounds ──► proposals
                                                     └──► without comparable rounds, the worst is assumed
"""
