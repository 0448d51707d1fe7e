"""Reports for the person who approves a promotion: canonical JSON first, everything else rendered from it."""
