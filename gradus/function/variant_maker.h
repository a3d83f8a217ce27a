/// Making variants: the C++ of a call is run with symbols in place of its arguments, and its trace is compiled.
#pragma once
#include <optional>
#include <variant>
#include "gradus/base/rooms.h"
#include "gradus/function/one_call.h"
#include "gradus/function/open_sizes.h"
#include "gradus/function/restarts.h"
#include "gradus/function/variants.h"

namespace gradus {

/// One call, and why it has begun again.
struct CallRequest {
  const Signature& signature;
  const Body& body;
  OneCall values;
  Restarts restarts;
  bool op_by_op = false;  // there are too many variants already, each for its sizes
};

/// One thread makes a variant at a time.
class VariantMaker {
 public:
  VariantMaker(const FunctionSetup& setup, Variants& variants) : setup_(setup), variants_(variants) {}

  /// For calls like this one. Sizes that vary in `pattern` are symbols, unless the C++ reads them: then they are fixed,
  /// and `reason` says so.
  std::shared_ptr<Variant> make(const Signature& pattern, CallRequest& request, std::string& reason) const;
  /// For the sizes of this call alone.
  std::shared_ptr<Variant> make_fixed(CallRequest& request) const;
  /// For the sizes of this call alone, not compiled.
  Draft draft(CallRequest& request) const;
  /// At the sizes of this call: is the C++ the program that the variant was made of? It is traced now, and compared
  /// with what the variant is made of; if they differ, with a trace of now, so that other C++ state that has changed
  /// since is in both.
  void confirm(Variant& variant, Segment& segment, CallRequest& request) const;
  /// Traces again: the known way first, then as this call goes. Null: the C++ is another program than it was.
  std::unique_ptr<Segment> extend(Variant& variant, CallRequest& request) const;

 private:
  struct Run;
  /// The parts that a run makes for its caller.
  enum class Kept { draft, draft_and_recording, recording };
  Run run(const Signature& pattern, CallRequest& request, Kept kept = Kept::draft, const Recording& other = {}) const;
  std::variant<Run, Unlike> run_open(const Signature& pattern, CallRequest& request, const Run& known) const;
  static std::optional<Unlike> how_it_differs(const OpenTrace& open, const Run& known,
                                              std::span<const std::int64_t> symbols);
  std::shared_ptr<Variant> finished(Run run, const CallRequest& request) const;
  std::shared_ptr<Variant> make_open(const Signature& pattern, CallRequest& request, std::string& reason) const;
  std::shared_ptr<Variant> make_narrower(const Signature& pattern, CallRequest& request, const Run& known,
                                         const Unlike& unlike, std::string& reason) const;
  /// For the sizes of this call.
  std::unique_ptr<Segment> compiled(Draft draft, const Signature& pattern, const CallRequest& request) const;

  const FunctionSetup& setup_;
  Variants& variants_;
};

}  // namespace gradus
