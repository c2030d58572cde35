"""The operator sweep: every operator of PyTorch's own operator database on device ltc, compared with the CPU."""
