"""The controlled proof: 48 real coordinator paths in shadow, one request each (harness, "Controlled proof")."""
