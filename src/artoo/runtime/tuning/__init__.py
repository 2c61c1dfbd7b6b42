"""`artoo config tune`, with records of decisions and proposals for the control law's numbers.

logs ──► records ──► the decisions of each law ──► the outcomes of comparable rounds ──► proposals
                                                     └──► without comparable rounds, the worst is assumed
"""
