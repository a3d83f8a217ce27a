/// ParameterProgram: the update that a parameter server computes when a step's push arrives. It is a graph, sent as
/// text, with the meaning of its inputs and outputs. It comes from another process, so everything is checked.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>
#include "gradus/base/rooms.h"
#include "gradus/function/tiered_program.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// As it travels. Variables are named by their numbers.
struct WrittenProgram {
  struct Input {
    enum class Kind : std::uint8_t { cell, push, capture } kind;
    std::size_t index;  // in the list of its kind
  };
  std::vector<std::uint64_t> pulled;          // Variables whose values workers ask for before such a step
  std::vector<std::uint64_t> reads, assigns;  // Variables
  std::vector<Spec> pushes;
  std::vector<Tensor> captures;
  std::vector<Input> inputs;  // of the graph, in order
  std::string graph;

  std::string to_bytes() const;
};

class ParameterProgram {
 public:
  static constexpr std::size_t most_bytes = std::size_t{1} << 30, most_entries = std::size_t{1} << 20;

  /// `spec_of` a Variable by its number throws a DataError for an unknown one. DataError for malformed bytes.
  ParameterProgram(std::string_view bytes, const std::function<Spec(std::uint64_t)>& spec_of);

  const std::vector<std::uint64_t>& pulled() const { return written_.pulled; }
  const std::vector<std::uint64_t>& reads() const { return written_.reads; }
  const std::vector<std::uint64_t>& assigns() const { return written_.assigns; }
  const std::vector<Spec>& pushes() const { return written_.pushes; }
  std::size_t push_bytes() const { return push_bytes_; }

  /// New values of assigns(), from those of reads() and the pushes.
  std::vector<Ref<Buffer>> run(std::span<const Ref<Buffer>> reads, std::span<const Ref<Buffer>> pushes) const;

 private:
  void check(const Graph& graph, const std::function<Spec(std::uint64_t)>& spec_of) const;
  WrittenProgram written_;
  std::size_t push_bytes_ = 0;
  std::unique_ptr<TieredProgram> program_;  // null: it assigns nothing
};

}  // namespace gradus
