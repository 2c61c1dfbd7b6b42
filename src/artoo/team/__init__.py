"""The agents of a home at work, with attempts, reviews, approvals, letters and the operator's actions."""
