/// A traced step becomes an object file.
#pragma once
#include "gradus/function/object_files.h"
#include "gradus/function/segment.h"
#include "gradus/function/traced_function.h"

namespace gradus {

/// The function's name in C for an object with this stem: the file's name. InvalidArgument unless it is a name in C
/// that neither C, C++ nor their libraries have.
std::string object_function_name(const std::filesystem::path& stem);

/// The one program of a function, for `arguments`. Both files are written, or none.
ObjectFiles write_object_files(const FunctionOptions& function, const std::string& title,
                               const std::filesystem::path& stem, const std::vector<Spec>& arguments,
                               const ObjectOptions& options, Draft draft);

}  // namespace gradus
