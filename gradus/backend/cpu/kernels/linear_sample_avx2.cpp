/// Samples by AVX2 (CMakeLists.txt says with which options this file is compiled).
#include "gradus/backend/cpu/kernels/linear_sample_code.h"
