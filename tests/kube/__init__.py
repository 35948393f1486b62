"""A test double of a Kubernetes cluster: the API server, its controllers, a scheduler and a kubelet, in one process.

cluster.py says how it is used.
"""
