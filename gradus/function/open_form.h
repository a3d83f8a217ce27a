/// OpenForm: one program for graphs that differ in numbers alone, such as the begin of a slice or the number of rows.
/// When several such graphs were met, the numbers that vary become symbols.
#pragma once
#include <memory>
#include <mutex>
#include "gradus/backend/backend.h"
#include "gradus/base/rooms.h"
#include "gradus/function/size_pattern.h"

namespace gradus {

/// A graph without its numbers, as words that spell it and the kind of its device exactly, and its numbers.
struct Spelling {
  std::vector<std::uint64_t> form;
  std::vector<AnyOp> ops;  // those whose records the words name
  std::vector<std::int64_t> numbers;

  Spelling(DeviceKind kind, const Graph& graph);
};

/// A program to be run with these values of its symbols.
struct ProgramForSizes {
  std::shared_ptr<const Executable> program;
  std::vector<std::int64_t> symbols = {};
  bool is_compiled = false, is_fresh = false;  // in this run
};

class OpenForm {
 public:
  /// Graphs with more values are not looked at.
  static constexpr int most_values = 1024;
  OpenForm(DeviceKind kind, std::vector<AnyOp> ops) : backend_(backend_of(kind)), ops_(std::move(ops)) {}

  /// A program that serves `graph`, which has these numbers, and others of the form; nothing if the form has not been
  /// met often enough with other numbers, or cannot be opened. `comes_back`: compiling is known to pay.
  std::optional<ProgramForSizes> find(const Graph& graph, const std::vector<std::int64_t>& numbers, bool comes_back);
  /// The bytes that it takes in a cache.
  std::size_t footprint() const;

 private:
  bool add_example(const Graph& graph, const std::vector<std::int64_t>& numbers);
  bool open(const Graph& graph, const std::vector<std::int64_t>& numbers);
  bool gives_outputs_of(const Graph& graph, std::span<const std::int64_t> symbols) const;
  ProgramForSizes program(std::vector<std::int64_t> symbols, bool comes_back);

  Backend& backend_;
  const std::vector<AnyOp> ops_;                     // kept, since their records name the form
  mutable std::mutex guard_;                         // guards the members below
  std::vector<std::vector<std::int64_t>> examples_;  // different ones
  SizePattern pattern_;
  Graph graph_;  // with symbols; empty: not opened yet
  std::shared_ptr<const Executable> interpreted_, compiled_;
  int openings_ = 0, sights_ = 0, patience_ = 0;
  bool is_closed_ = false;  // for good
};

}  // namespace gradus
