"""Reading and editing of YAML settings files, with places, problems, sections and proxies."""
