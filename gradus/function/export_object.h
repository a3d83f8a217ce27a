/// A traced step becomes an object file.
#pragma once
#include <functional>
#include "gradus/function/object_files.h"
#include "gradus/function/segment.h"
#include "gradus/function/traced_function.h"

namespace gradus {

/// The function's name in C for an object with this stem: the file's name. InvalidArgument unless it is a name in C
/// that neither C, C++ nor their libraries have.
std::string object_function_name(const std::filesystem::path& stem);

/// The files of an object with this stem, and with weights in a file if one is named. InvalidArgument, as of the stem,
/// also for a directory in place of a file, weights without a name, and two that are one file. Unavailable if a folder
/// does not exist. Asked before anything is traced.
ObjectFiles object_places(const std::filesystem::path& stem, const std::filesystem::path& weights);

namespace detail::inline rooms {

/// The one program of a function, for `arguments`.
struct TracedStep {
  FunctionOptions options;
  std::string title;
  std::vector<Spec> arguments;
  std::shared_ptr<const Segment> segment;
  Graph graph;
};

}  // namespace detail::inline rooms

using TracedSteps = std::vector<std::shared_ptr<const TracedStep>>;

/// A step of export_objects, traced when it is asked for.
struct StepToTrace {
  std::string name;
  std::function<std::shared_ptr<const TracedStep>()> trace;
};

/// export_objects of steps that may be no Functions.
ObjectFiles export_steps(const std::filesystem::path& stem, const std::vector<StepToTrace>& steps,
                         const ObjectOptions& options);

std::shared_ptr<const TracedStep> traced_step(const FunctionOptions& function, const std::string& title,
                                              const std::vector<Spec>& arguments, Draft draft);

/// `names`: what follows the stem in the names of their functions; of one step it may be nothing. All files are
/// written, or none.
ObjectFiles write_object_files(const std::filesystem::path& stem, const std::vector<std::string>& names,
                               const TracedSteps& traced, const ObjectOptions& options);

}  // namespace gradus
