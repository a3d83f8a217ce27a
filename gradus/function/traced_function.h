/// TracedFunction: the implementation of Function<F>, without templates. It chooses the variant for a call by its
/// signature, traces and compiles a new one if none fits, and runs it. Here are the options of function().
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>
#include "gradus/backend/matmul_precision.h"
#include "gradus/base/ranges.h"
#include "gradus/function/explanation.h"
#include "gradus/function/object_files.h"
#include "gradus/function/signature.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// Options of function().
struct FunctionOptions {
  std::string name = {};  // in reports and errors
  /// Given: one variant serves all sizes marked any_size; other inputs are an InvalidArgument. Sizes that agree in the
  /// first call are taken to agree always; if they do not, a second variant is made. A size that an op has to know, as
  /// fft does, is fixed: one variant for each, which explain() reports; past max_variants of them further sizes run op
  /// by op, with a notice (set_notice_sink). A size that the C++ reads is an InvalidArgument.
  std::vector<Spec> input_signature = {};
  /// Budget in bytes for the values that a call keeps between its kernels, above arguments, variables and results; 0:
  /// none. Values that do not fit are computed again where they are read late, with the same bits. If that is not
  /// enough: ResourceExhausted, which names the smallest budget that works. It holds for every call: where sizes vary,
  /// one that would exceed it in the compiled program is a retrace for its sizes. Memory that each thread uses within a
  /// kernel, such as packed parts of a matrix product, is not counted. On several devices it holds for each part of the
  /// program. Nothing is kept across a C++ branch on a tensor value: code after the branch computes its operands again.
  /// A function that is traced along keeps to the budget of the outer one.
  std::size_t max_bytes = 0;
  int max_variants = 16;        // at a time; past it: ResourceExhausted, with the reasons of all retraces
  bool evict_variants = false;  // past max_variants the least recently used one is dropped instead of an error
  bool open_sizes = true;       // false: each size has a variant, whose C++ runs once with numbers as sizes
  std::vector<std::string> disable = {};  // passes to leave out, by the names that compiler/passes.h lists: {"fuse"}
  bool profile = false;                   // explain() has the measured time of each kernel, on average
  bool run_eagerly = false;               // op by op, as the C++ runs: for a debugger
  /// For products and convolutions of f32 on devices of plugins; not given: GRADUS_MATMUL_PRECISION, else the
  /// platform's default. The processor keeps all bits always. A function that is traced along has that of the outer
  /// one; op by op it is the process's.
  std::optional<MatmulPrecision> matmul_precision = {};
  bool fixes_sizes =
      false;  // sizes of input_signature that the C++ reads are fixed, as sizes that ops have to know are
  static constexpr auto ranges() { return std::array{Allowed::any("max_bytes"), Allowed::positive("max_variants")}; }
};

/// Limits the bytes that the variants of all functions take together. Past that, the least recently used ones are
/// dropped, but never the newest; they are made again when they are called. Returns the limit before, at first 512 MiB.
std::size_t set_variants_limit(std::size_t bytes);

namespace detail::inline rooms {

/// The result of a call: tensors in a fixed order (an empty one stays empty), and the user's structure with empty
/// tensors in their places.
struct Called {
  Tensors tensors;
  std::shared_ptr<const void> structure;
  std::string lengths = {};  // of vectors, and keys of maps, of the structure
};
/// The call of a user's function on given tensors.
using Body = std::function<Called(In arguments)>;

struct TracedStep;

class TracedFunction {
 public:
  /// `closure` and `closure_bytes`: where the callable lies.
  TracedFunction(FunctionOptions options, const void* closure, std::size_t closure_bytes);
  ~TracedFunction();

  /// `body` is called if the signature is new, or if the call happens inside another trace or under a tape: then it is
  /// traced along.
  Called call(In arguments, const StaticArguments& statics, const Body& body);
  /// The step for an object file; `arguments`: of all of them, Tensors, which `body` takes.
  std::shared_ptr<const TracedStep> trace_step(std::vector<Spec> arguments, const StaticArguments& statics,
                                               const Body& body);
  /// An object file of this step alone.
  ObjectFiles export_object(const std::filesystem::path& stem, std::vector<Spec> arguments,
                            const ObjectOptions& options, const StaticArguments& statics, const Body& body);
  /// The text of Function::stablehlo, for such arguments.
  std::string stablehlo(std::vector<Spec> arguments, const StaticArguments& statics, const Body& body);
  Explanation explain() const;

 private:
  /// use(draft, arguments) of the trace for known sizes; `what` opens errors.
  template <class Use>
  auto with_draft(const char* what, std::vector<Spec> arguments, const StaticArguments& statics, const Body& body,
                  const Use& use);
  struct State;
  std::unique_ptr<State> state_;
};

/// Writes a text of StableHLO into `file`, which appears whole or not at all; Unavailable if it cannot be written.
void write_stablehlo(const std::filesystem::path& file, const std::string& text);

}  // namespace detail::inline rooms

}  // namespace gradus
