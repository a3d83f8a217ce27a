/// Plain loops that are compiled for longer vectors than every processor of the architecture has: for AVX2, without
/// which nothing computes here. 64-bit ARM has NEON in every processor.
#pragma once

#if defined(__x86_64__)
#define GRADUS_WIDE_VECTORS [[gnu::target("avx2")]]
#define GRADUS_WIDE_VECTORS_AND_FMA [[gnu::target("avx2,fma")]]
#else
#define GRADUS_WIDE_VECTORS
#define GRADUS_WIDE_VECTORS_AND_FMA
#endif
