/// The tools of binutils do it: every machine that links programs has them.
#include "gradus/backend/cpu/object/link.h"
#include <cxxabi.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include "gradus/backend/cpu/object/elf_symbols.h"
#include "gradus/backend/cpu/object/kernel_archive.h"
#include "gradus/base/error.h"
#include "gradus/base/input_file.h"

extern char** environ;

namespace gradus::object {
namespace {

/// A folder that is gone with it.
class WorkFolder {
 public:
  WorkFolder() {
    const std::string ending(6, 'X');  // which mkdtemp replaces
    std::error_code problem;
    const std::filesystem::path folder = std::filesystem::temp_directory_path(problem);
    require<Unavailable>(!problem, "export_object: there is no folder for work, which TMPDIR names, else /tmp: set ",
                         "TMPDIR to one that can be written");
    std::string name = (folder / ("gradus_object_" + ending)).string();
    require<Unavailable>(mkdtemp(name.data()) != nullptr, "export_object: cannot make a folder in ", folder.string(),
                         ": set TMPDIR to one that can be written");
    path_ = name;
  }
  ~WorkFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  WorkFolder(const WorkFolder&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

void write_file(const std::string& file, std::string_view bytes) {
  const int descriptor = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  bool is_written = descriptor >= 0;
  while (is_written && !bytes.empty()) {
    const ssize_t count = write(descriptor, bytes.data(), bytes.size());
    if (count > 0) bytes.remove_prefix(static_cast<std::size_t>(count));
    else is_written = count < 0 && errno == EINTR;
  }
  if (descriptor >= 0) close(descriptor);
  require<ResourceExhausted>(is_written, "export_object: ", file, " cannot be written: is the disk full? TMPDIR names ",
                             "another folder for work");
}

/// The name of a tool for the machines of a processor.
std::string tool(const std::string& name, const cpu_backend::Processor& processor) {
  return is_own(processor) ? name : text(processor.target, '-', name);
}
std::string how_to_have(const std::string& tool) {
  const std::size_t end = tool.rfind('-');
  std::string package = end == std::string::npos ? "" : "-" + tool.substr(0, end);
  std::ranges::replace(package, '_', '-');  // as Debian names it
  return text("install binutils", package, ", with which object files are linked");
}

/// Runs a tool; its messages go to the file `messages`.
void run_tool(std::vector<std::string> words, const std::string& messages) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, messages.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int problem = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  require<Unavailable>(problem == 0, "export_object: the program ", words[0],
                       " cannot be run: ", how_to_have(words[0]));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
    throw Unavailable(text("export_object: there is no program ", words[0], ": ", how_to_have(words[0])));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw InternalError(text("internal fault: ", words[0], " failed: ", read_text_file(messages)));
}

bool begins_with_any(std::string_view name, std::initializer_list<std::string_view> beginnings) {
  return std::ranges::any_of(beginnings, [&](std::string_view b) { return name.starts_with(b); });
}

/// Functions that every C compiler expects of its surroundings.
bool is_memory_function(std::string_view name) { return name == "memcpy" || name == "memset" || name == "memmove"; }

/// The C++ of kernels throws InternalError in impossible cases: texts and exceptions.
bool is_of_faults(std::string_view name) {
  return begins_with_any(name, {"_ZNS", "_ZNKS", "_ZS", "_ZTIS", "_ZTINS", "_ZTVS", "_ZTVNS", "_ZTSS",
                                "_ZTVN10__cxxabiv1", "__cxa_", "__gxx_personality", "_Unwind_", "_Znw", "_Zdl",
                                "_ZN6gradus13InternalError", "_ZTIN6gradus13InternalError", "_ZN6gradus9printable"}) ||
         name == "strlen";
}

using Instead = std::map<std::string, std::string>;  // names that another name stands for

/// A name of C++ as it is written; empty for one of C.
std::string written(const std::string& symbol) {
  int problem = 0;
  char* const name = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &problem);
  const std::string copy = name == nullptr ? "" : name;
  std::free(name);
  return copy;
}

/// Functions that are compiled for several instruction sets are named so, and one of them is called: that of the best
/// of these sets that the object is for. The others stay out.
constexpr std::string_view variants[] = {"_by_avx2", "_by_avx512", "_by_avx512_bf16"};

/// By AVX2 in any object: they are for few channels.
bool is_for_any_set(std::string_view name) { return name.find("transforms_by_avx2") != std::string_view::npos; }

void choose_variants(const std::set<std::string>& defined, std::size_t best, Instead& instead) {
  std::map<std::string, std::map<std::size_t, std::string>> functions;  // by name without the set, by set
  for (const std::string& symbol : defined) {
    std::string name = written(symbol);
    for (std::size_t set = std::size(variants); set-- > 0;) {  // the longest name first
      const std::size_t at = name.find(variants[set]);
      if (at == std::string::npos) continue;
      if (!is_for_any_set(name) || best == 0) functions[name.erase(at, variants[set].size())][set] = symbol;
      break;
    }
  }
  for (const auto& [name, by_set] : functions) {
    auto chosen = by_set.upper_bound(best);
    if (chosen == by_set.begin()) continue;
    --chosen;
    for (const auto& [set, symbol] : by_set)
      if (set != chosen->first) instead[symbol] = chosen->second;
  }
}

/// Names that code refers to without ever needing them: tiles and functions of other instruction sets, and the driver
/// of AMX.
Instead of_other_processors(std::string_view all, const cpu_backend::Processor& processor) {
  const std::string used = processor.tile_table;
  const std::set<std::string> defined = defined_symbols(all);
  Instead instead;
  for (const cpu_backend::Processor& other : cpu_backend::processors)
    if (defined.contains(used) && other.tile_table != used && std::string_view(other.target) == processor.target)
      instead[other.tile_table] = used;
  const bool wide = processor.isa == cpu_backend::Isa::avx512;
  choose_variants(defined, wide ? 1 + cpu_backend::has_pair_products() : 0, instead);
  for (const std::string& symbol : defined)
    if (written(symbol).starts_with("gradus::cpu_backend::run_amx(")) instead[symbol] = "gradus_object_fault";
  return instead;
}

}  // namespace

std::string missing_tool(const cpu_backend::Processor& processor) {
  const char* const folders = std::getenv("PATH");
  const std::string_view path = folders ? folders : "/usr/bin:/bin";
  const auto is_in_path = [&](const std::string& name) {
    for (std::size_t begin = 0; begin <= path.size();) {
      const std::size_t end = std::min(path.find(':', begin), path.size());
      if (access((std::filesystem::path(path.substr(begin, end - begin)) / name).c_str(), X_OK) == 0) return true;
      begin = end + 1;
    }
    return false;
  };
  for (const char* name : {"ld", "objcopy"})
    if (std::string wanted = tool(name, processor); !is_in_path(wanted)) return wanted;
  return {};
}

std::string linked(const std::vector<std::string>& objects, const std::vector<std::string>& kept, cpu_backend::Isa isa,
                   const std::string& title) {
  const WorkFolder folder;
  const std::string messages = folder.file("messages"), archive = folder.file("kernels.a");
  const cpu_backend::Processor& processor = cpu_backend::processor_of(isa);
  write_file(archive, kernel_archive(processor.target));
  std::vector<std::string> files;
  for (const std::string& object : objects) {
    files.push_back(folder.file(text(files.size(), ".o")));
    write_file(files.back(), object);
  }
  std::vector<std::string> link{tool("ld", processor),      "-r", "--gc-sections",
                                "--force-group-allocation", "-u", "gradus_object_fault"};
  for (const std::string& name : kept) link.insert(link.end(), {"-u", name});
  const auto link_to = [&](const std::string& output, const Instead& instead) {
    std::vector<std::string> words = link;
    for (const auto& [name, other_name] : instead) words.push_back(text("--defsym=", name, "=", other_name));
    words.insert(words.end(), {"-o", output});
    words.insert(words.end(), files.begin(), files.end());
    words.push_back(archive);
    run_tool(std::move(words), messages);
  };
  const std::string first = folder.file("first.o"), second = folder.file("second.o"), last = folder.file("last.o");
  link_to(first, {});
  const std::string all = read_text_file(first);
  Instead instead = of_other_processors(all, processor);
  for (const std::string& name : undefined_symbols(all)) {
    if (is_memory_function(name)) continue;
    require(is_of_faults(name), title, ": its code needs ", name,
            ", which does not come along in an object file: replace the op that computes with it");
    instead[name] = "gradus_object_fault";
  }
  link_to(second, instead);
  std::vector<std::string> strip{tool("objcopy", processor), "--strip-unneeded", "--remove-section=.comment"};
  for (const std::string& name : kept) strip.push_back("--keep-global-symbol=" + name);
  strip.insert(strip.end(), {second, last});
  run_tool(std::move(strip), messages);
  return read_text_file(last);
}

}  // namespace gradus::object
