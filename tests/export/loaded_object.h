/// Exported steps in the process of a test: the object is linked to a shared library, with nothing but the C library's
/// memory functions, and called through C.
#pragma once
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include "gradus/backend/cpu/object/elf_symbols.h"
#include "gradus/backend/object.h"
#include "gradus/base/input_file.h"
#include "gradus/function/function.h"
#include "gradus/function/variable_cell.h"
#include "gradus/ops/random_state.h"
#include "tests/threads.h"

namespace gradus {

/// A folder of its own for each test, until the process ends.
inline std::filesystem::path export_folder() {
  struct Folders {
    const std::filesystem::path all = std::filesystem::temp_directory_path() / text("gradus-export-", getpid());
    int count = 0;
    ~Folders() {
      std::error_code ignored;
      std::filesystem::remove_all(all, ignored);
    }
  };
  static Folders folders;
  const auto folder = folders.all / std::to_string(folders.count++);
  std::filesystem::create_directories(folder);
  return folder;
}

/// Every field of a state has the bits of the variable of its name, and random numbers continue as the library's.
inline void expect_fields_equal(const StateLayout& layout, const std::byte* state, const Variables& variables) {
  std::map<std::string, std::size_t> seen;
  for (const StateField& field : layout.fields) {
    const VariableCell* of = nullptr;
    std::size_t which = seen[field.name]++;
    for (const auto& cell : variables.cells())
      if (cell->name == field.name && which-- == 0) of = cell.get();
    ASSERT_NE(of, nullptr) << field.name;
    const Tensor value = of->handle.value();
    ASSERT_EQ(value.spec(), field.spec) << field.name;
    EXPECT_EQ(
        std::memcmp(value.observed().host(), state + field.offset, static_cast<std::size_t>(bytes_of(field.spec))), 0)
        << field.name;
  }
  if (layout.random_state < 0) return;
  std::uint64_t now;
  std::memcpy(&now, state + layout.random_state, sizeof now);
  EXPECT_EQ(now, random_state());
}

class LoadedObject {
 public:
  explicit LoadedObject(const ObjectFiles& files)
      : name_(files.object.stem().string()), layout_(state_layout(read_text_file(files.header))) {
    const std::string library = files.object.string() + ".so";
    const std::string link =
        "ld -shared --no-undefined -z noexecstack -o " + library + " " + files.object.string() + " -lc";
    const bool is_linked = std::system((link + " 2>" + library + ".log").c_str()) == 0;
    EXPECT_TRUE(is_linked) << read_text_file(library + ".log");
    for (const std::string& name : object::undefined_symbols(read_text_file(files.object)))
      EXPECT_TRUE(name == "memcpy" || name == "memset" || name == "memmove") << name;
    handle_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(handle_, nullptr) << dlerror();
    memory_.resize(static_cast<std::size_t>(layout_.bytes) + 128);
    auto begin = reinterpret_cast<std::uintptr_t>(memory_.data());
    state_ = memory_.data() + (64 - begin % 64) % 64 + shift;
    if (files.weights.empty()) {
      function<void (*)(void*)>("_init")(state_);
      return;
    }
    EXPECT_EQ(function<void*>("_init"), nullptr);
    const std::string weights = read_text_file(files.weights);
    std::memset(state_, 0x5A, static_cast<std::size_t>(layout_.bytes));  // what is behind them may be anything
    std::memcpy(state_, weights.data(), weights.size());
  }
  LoadedObject(const LoadedObject&) = delete;
  ~LoadedObject() {
    if (handle_) dlclose(handle_);
  }

  static constexpr std::size_t shift = 8;  // states may begin anywhere

  template <class F> F function(const std::string& suffix = {}) const {
    return reinterpret_cast<F>(dlsym(handle_, (name_ + suffix).c_str()));
  }
  bool is_supported() const { return function<int (*)()>("_supported")() == 1; }
  std::byte* state() const { return state_; }
  const StateLayout& layout() const { return layout_; }
  /// One run that returns a float.
  template <class... P> float step(P*... pointers) const {
    return function<float (*)(void*, P*...)>()(state_, pointers...);
  }
  template <class... P> void run(P*... pointers) const { function<void (*)(void*, P*...)>()(state_, pointers...); }
  /// With any number of pointers, the state first. More arguments than a function takes do no harm on this processor.
  void call(std::vector<void*> pointers) const {
    constexpr std::size_t most = 160;
    ASSERT_LE(pointers.size(), most);
    pointers.resize(most);
    call(pointers, std::make_index_sequence<most>());
  }
  std::int64_t failure() const {
    std::int64_t told = 0;  // behind the last field
    std::int64_t end = 0;
    for (const StateField& f : layout_.fields) end = std::max(end, next(f.offset + bytes_of(f.spec)));
    if (layout_.random_state >= 0) end = next(layout_.random_state + 8);
    std::memcpy(&told, state_ + end, sizeof told);
    return told;
  }

  void expect_equals(const Variables& variables) const { expect_fields_equal(layout_, state_, variables); }

 private:
  template <std::size_t> using Pointer = void*;
  template <std::size_t... i> void call(const std::vector<void*>& p, std::index_sequence<i...>) const {
    function<void (*)(Pointer<i>...)>()(p[i]...);
  }
  static std::int64_t next(std::int64_t end) { return (end + 64 + 63) / 64 * 64; }
  const std::string name_;
  const StateLayout layout_;
  void* handle_ = nullptr;
  std::vector<std::byte> memory_;
  std::byte* state_ = nullptr;
};

}  // namespace gradus
