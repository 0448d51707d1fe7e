"""One small web service on loopback: metrics, health, a status page and the written reports (harness, "serve")."""
