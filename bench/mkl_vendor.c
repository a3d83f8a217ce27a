/* LD_PRELOADed, MKL takes its AVX-512 kernels on processors of other vendors too: "torch+" of run.py. */
int mkl_serv_intel_cpu_true(void) { return 1; }
int mkl_serv_intel_cpu(void) { return 1; }
