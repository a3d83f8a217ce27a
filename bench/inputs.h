/// What a workload computes with: the arrays that the peers draw, where run.py hands them on, so that results can be
/// compared; otherwise drawn here.
#pragma once
#include <cstdint>
#include <filesystem>
#include "gradus/function/variable.h"

namespace gradus::bench {

/// --inputs: an .npz as inputs.py writes it. Empty: everything is drawn here.
inline std::filesystem::path inputs_file;

struct Batch {
  Tensor x, y;  // f32 in [0, 1), i32 [rows] of ten classes
};
/// `images`: the shape of x.
Batch batch_of(const Shape& images);
/// Tokens [rows, places] below `vocabulary`, and the ones that follow each of them.
Batch text_of(std::int64_t rows, std::int64_t places, std::int64_t vocabulary);

/// Gives the variables the peers' values, by their order; returns whether there are any.
bool assign_given(const Variables& variables);

}  // namespace gradus::bench
