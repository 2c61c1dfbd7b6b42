"""Proposals for the control law's numbers, from a person's own task logs (docs/tune.md).

logs ──► records ──► what each law would have decided ──► what came after it in comparable rounds ──► proposals
                                                             └──► nothing comparable: the worst is assumed
"""
