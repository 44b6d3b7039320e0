"""Random problems with every rule that decides where a pod may go, and their documents in the words of Kubernetes."""
