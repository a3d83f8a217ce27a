/// Objects in files, found by all that they were generated from. Files appear whole or not at all.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace gradus::cpu_backend::code_files {

/// Whether a directory was named. Thread-safe, as all here.
bool are_kept();
/// The object made from exactly this source; nothing if there is none, or its file is damaged.
std::optional<std::string> read(std::string_view source);
/// Where that fails, nothing is kept.
void write(std::string_view source, std::string_view object);

}  // namespace gradus::cpu_backend::code_files
