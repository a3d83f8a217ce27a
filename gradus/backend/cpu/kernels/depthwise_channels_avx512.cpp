/// Channels of depthwise convolutions by AVX-512: vectors of up to 64 bytes (CMakeLists.txt says with which options
/// this file is compiled).
#include "gradus/backend/cpu/kernels/depthwise_channels_code.h"

namespace gradus::library::depthwise {

static_assert(vector_bytes == 64);

template <class E> const ChannelFunctions<E>& channels_by_avx512() { return functions<E>; }

template const ChannelFunctions<float>& channels_by_avx512();
template const ChannelFunctions<double>& channels_by_avx512();
template const ChannelFunctions<std::uint32_t>& channels_by_avx512();
template const ChannelFunctions<std::uint64_t>& channels_by_avx512();

}  // namespace gradus::library::depthwise
