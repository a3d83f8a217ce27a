/// All kernels that are compiled by the length of vectors, for NEON: vectors of 16 bytes.
#include "gradus/backend/cpu/kernels/attention_rows_code.h"
#include "gradus/backend/cpu/kernels/depthwise_channels_code.h"
#include "gradus/backend/cpu/kernels/factor_blocks_code.h"
#include "gradus/backend/cpu/kernels/fourier_code.h"
#include "gradus/backend/cpu/kernels/linear_sample_code.h"
#include "gradus/backend/cpu/kernels/row_functions_code.h"
#include "gradus/backend/cpu/kernels/winograd_transforms_code.h"

namespace gradus::library {

static_assert(vector_bytes == 16);

const attention::RowFunctions attention::rows_by_neon = attention::functions;
const winograd::Transforms winograd::transforms_by_neon = winograd::functions;

namespace depthwise {
template <class E> const ChannelFunctions<E>& channels_by_neon() { return functions<E>; }
template const ChannelFunctions<float>& channels_by_neon();
template const ChannelFunctions<double>& channels_by_neon();
template const ChannelFunctions<std::uint32_t>& channels_by_neon();
template const ChannelFunctions<std::uint64_t>& channels_by_neon();
}  // namespace depthwise

namespace factors {
template <class T> const BlockFunctions<T>& blocks_by_neon() { return functions<T>; }
template const BlockFunctions<float>& blocks_by_neon();
template const BlockFunctions<double>& blocks_by_neon();

template <class T> const RowFunctions<T>& rows_by_neon() { return table_of_rows<T>; }
template const RowFunctions<float>& rows_by_neon();
template const RowFunctions<double>& rows_by_neon();
}  // namespace factors

namespace fourier {
template <class T> TransformRows<T> rows_by_neon() { return rows_of<T>; }
template TransformRows<float> rows_by_neon();
template TransformRows<double> rows_by_neon();
}  // namespace fourier

}  // namespace gradus::library
