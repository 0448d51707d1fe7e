"""May this surface, on this profile, go to the next phase? A pure function of evidence, policy and day."""
