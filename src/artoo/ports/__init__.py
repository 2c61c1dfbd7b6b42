"""One interface (Protocol) per file, between the roles and the services that they use."""
