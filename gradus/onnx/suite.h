/// Directories in the layout of ONNX's own conformance suite: model.onnx, optionally data.json with rtol and atol, and
/// test_data_set_N with input_K.pb and output_K.pb.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace gradus::onnx {

struct Verdict {
  enum class Outcome { passed, failed, unsupported };
  Outcome outcome = Outcome::passed;
  std::string why;  // reason if it did not pass
};

/// Runs every data set of one directory. It compares shape, element type, then |got - want| <= atol + rtol * |want|,
/// with NaN equal to NaN. Tolerances are 1e-7 and 1e-3 unless data.json has others; for bf16 rtol is at least 2^-6.
/// Every failure is a verdict, never an exception. Where the default device is not the processor each data set runs
/// twice, so that the device computes what the processor does at first sight.
Verdict run_case(const std::filesystem::path& directory);

/// The directories that contain a model.onnx: each of `roots` itself, or all below it, in order.
std::vector<std::filesystem::path> find_cases(const std::vector<std::filesystem::path>& roots);

}  // namespace gradus::onnx
