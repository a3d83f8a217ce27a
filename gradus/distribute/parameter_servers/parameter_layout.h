/// ParameterLayout: the placement of Variables on parameter servers. All processes find the same: it follows from the
/// programs of steps, in the order in which they are scheduled, and from sizes alone.
#pragma once
#include <unordered_map>
#include "gradus/distribute/parameter_servers/step_program.h"

namespace gradus::detail {

class ParameterLayout {
 public:
  static constexpr int everywhere = -1;

  struct Place {
    StepProgram::Cell cell;
    int server = 0;          // everywhere: each has it, and updates it alike
    Tensor last_known = {};  // its value when servers and this process last agreed
    bool is_on(int which) const { return server == everywhere || server == which; }
    /// The server that is asked for it.
    int home() const { return server == everywhere ? 0 : server; }
  };

  explicit ParameterLayout(int servers) : loads_(static_cast<std::size_t>(servers)) {}

  /// Places new Variables of the program. The Variables that an update reads are on one server; those of one element
  /// may be on all. Larger ones are placed first, on the server that has least. InvalidArgument if earlier steps have
  /// separated Variables that this one updates together.
  void add(const StepProgram& program);

  /// By number.
  std::vector<Place>& places() { return places_; }
  const std::vector<Place>& places() const { return places_; }
  std::uint64_t number_of(const VariableCell& cell) const { return numbers_.at(&cell); }
  const Place& of(const VariableCell& cell) const { return places_[numbers_.at(&cell)]; }
  int servers() const { return static_cast<int>(loads_.size()); }

 private:
  std::vector<Place> places_;
  std::unordered_map<const VariableCell*, std::uint64_t> numbers_;
  std::vector<std::int64_t> loads_;  // bytes
};

}  // namespace gradus::detail
