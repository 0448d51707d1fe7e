"""The observation: every day each pair is driven through its real path in shadow (harness, "14-day observation")."""
