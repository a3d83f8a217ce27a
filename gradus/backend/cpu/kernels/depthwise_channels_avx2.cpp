/// Channels of depthwise convolutions by AVX2: vectors of up to 32 bytes (CMakeLists.txt says with which options this
/// file is compiled).
#include "gradus/backend/cpu/kernels/depthwise_channels_code.h"

namespace gradus::library::depthwise {

static_assert(vector_bytes == 32);

template <class E> const ChannelFunctions<E>& channels_by_avx2() { return functions<E>; }

template const ChannelFunctions<float>& channels_by_avx2();
template const ChannelFunctions<double>& channels_by_avx2();
template const ChannelFunctions<std::uint32_t>& channels_by_avx2();
template const ChannelFunctions<std::uint64_t>& channels_by_avx2();

}  // namespace gradus::library::depthwise
