/// Variable: a named cell that holds a Tensor. Outside traces an assignment waits, with all else that is pending, until
/// something is observed; in a trace it is an output of the program.
#pragma once
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <vector>
#include "gradus/graph/call_context.h"
#include "gradus/graph/tensor.h"

namespace gradus {

struct VariableCell;

/// What assigning on several replicas does with their values; none: an error there.
enum class Aggregation { none, mean, sum };
struct VariableOptions {
  bool trainable = true;
  Aggregation aggregation = Aggregation::none;
};

class Variable {
 public:
  explicit Variable(const Tensor& initial, std::string name = {}, VariableOptions options = {});
  /// A new cell with the same value, so it has to be said: `for (Variable v : variables)` does not compile.
  explicit Variable(const Variable& other);
  Variable(Variable&& other) noexcept;
  Variable& operator=(const Tensor& value) = delete;  // assign(value)
  ~Variable();

  /// Reading; recorded by tapes and tracing.
  operator Tensor() const { return value(); }
  Tensor value() const;
  const Shape& shape() const;
  DType dtype() const;
  const std::string& name() const;
  /// The same spec, else InvalidArgument. From two threads at once: Error.
  void assign(const Tensor& value);
  void assign_add(const Tensor& value);
  void assign_sub(const Tensor& value);
  /// Whether trainable_variables() lists it. What was traced notices a change.
  bool trainable() const;
  void set_trainable(bool trainable);
  /// Pruning: from now on elements where `mask` is 0 are 0, whatever is assigned, and get no gradient. `mask` has the
  /// variable's shape and any type; a copy of the variable has a mask of its own with the same value. An empty Tensor
  /// takes the mask away; the elements are 0 then until something else is assigned. In compiled functions another mask
  /// is another value, the first one and its end are a retrace. InvalidArgument for another shape, and within a traced
  /// function for the first mask and its end.
  void set_mask(const Tensor& mask);
  /// Booleans of the variable's shape; empty if there is no mask.
  Tensor mask() const;
  Aggregation aggregation() const;
  /// Its value, as that of a Tensor.
  friend std::ostream& operator<<(std::ostream& out, const Variable& variable);

  // For the rooms of the library.
  void set_name(std::string name);
  /// From now on this is a handle of `cell`.
  void become(const std::shared_ptr<VariableCell>& cell);
  const std::shared_ptr<VariableCell>& cell() const { return cell_; }

 private:
  friend struct VariableCell;
  friend class Variables;
  explicit Variable(std::shared_ptr<VariableCell> cell);
  std::shared_ptr<VariableCell> cell_;
};

/// An ordered list of cells, by identity; cells stay alive while listed.
class Variables {
 public:
  template <class... V>
    requires(std::same_as<std::remove_const_t<V>, Variable> && ...)
  Variables(V&... variables) {
    (add(variables), ...);
  }
  std::size_t size() const { return cells().size(); }
  /// The cell's own handle: it lives as long as the cell, not as this list. OutOfRange past the end.
  Variable& operator[](std::size_t i) const;
  /// By name, such as "dense_1/kernel"; an InvalidArgument lists the nearest names.
  Variable& operator[](std::string_view name) const;
  /// A cell that is in both counts once.
  Variables operator+(const Variables& more) const;
  Variables filter(const std::function<bool(std::string_view name)>& keep) const;

  struct iterator {
    using value_type = Variable;
    using difference_type = std::ptrdiff_t;
    const Variables* list = nullptr;
    std::size_t i = 0;
    Variable& operator*() const { return (*list)[i]; }
    iterator& operator++() {
      ++i;
      return *this;
    }
    bool operator==(const iterator& other) const { return i == other.i; }
  };
  iterator begin() const { return {this, 0}; }
  iterator end() const { return {this, size()}; }
  /// Number of elements in all.
  std::int64_t parameters() const;

  // For the rooms of the library.
  void add(const Variable& variable);
  const std::vector<std::shared_ptr<VariableCell>>& cells() const {
    if (later_) find_out();
    return cells_;
  }
  /// The position of a cell; -1 if it is not listed.
  std::ptrdiff_t find(const VariableCell& cell) const;
  /// A list that is found out when it is first looked at: arguments of a call are evaluated in any order, so in
  /// tape.gradient(loss(y, model(x)), model.trainable_variables()) the model may be built after it was asked.
  static Variables later(std::function<Variables()> list);

 private:
  void find_out() const;
  mutable std::vector<std::shared_ptr<VariableCell>> cells_;
  mutable std::function<Variables()> later_;
};

/// Told of every reading of a Variable on the thread that made it, while it lives: how a tape knows what it watched.
class ReadListener {
 public:
  ReadListener() { CallContext::here().listener = this; }
  virtual ~ReadListener();
  ReadListener(const ReadListener&) = delete;
  virtual void on_read(VariableCell& cell, const Tensor& value) = 0;
  /// Whether `value` means something else to the listener than that it was read, such as what a Variable was assigned.
  virtual bool knows(const Tensor& value) const = 0;
  /// A compiled function that is called here reads it: its value is no node of this thread.
  virtual void on_read_within(VariableCell&) {}

  /// What the reader gets in place of `value`: a node of its own where a listener knows that one.
  static Tensor tell(VariableCell& cell, Tensor value);
  static void tell_within(VariableCell& cell);
  /// Whether there is anybody to tell.
  static bool is_there() { return CallContext::here().listener != nullptr; }

 private:
  ReadListener* outer_ = CallContext::here().listener;
};

}  // namespace gradus
