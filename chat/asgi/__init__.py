"""What happens to a connection before Django or Channels sees it: probes, origins, the size and pace of bodies."""
