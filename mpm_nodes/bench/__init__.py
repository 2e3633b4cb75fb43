"""What a solve costs on this machine: particle-steps per second of scenes, laws, kernels and transfers."""
