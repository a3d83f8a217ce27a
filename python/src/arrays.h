/// Numbers of NumPy and Python as bytes, where a tensor of each would cost too much.
#pragma once
#include "python/src/casters.h"

namespace gradus::python {

/// Copies an array of NumPy of no class of its own, or one of its scalars, whose dtype and shape are those of the spec,
/// to `out`. False, and nothing is written, for any other object.
bool write_array(nb::handle object, const Spec& spec, std::byte* out);
/// Writes an int of Python as int32 or int64, or a float as float32 or float64. False, and nothing is written, for any
/// other object, spec, or an int that does not fit.
bool write_number(nb::handle object, const Spec& spec, std::byte* out);

}  // namespace gradus::python
