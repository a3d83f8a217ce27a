/// Files of generated code, each found by all that it was generated from. Files appear whole or not at all.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace gradus::cpu_backend::code_files {

/// The directory that was named; empty if none is. It may be another one soon: ask once for a group of files.
/// Thread-safe, as all here.
std::filesystem::path directory();
/// The object made from exactly this source; nothing if there is none, or its file is damaged.
std::optional<std::string> read(const std::filesystem::path& directory, std::string_view source);
/// Where that fails, nothing is kept.
void write(const std::filesystem::path& directory, std::string_view source, std::string_view object);

}  // namespace gradus::cpu_backend::code_files
