/// Variable: a named cell that holds a Tensor. Outside of traces an assignment is lazy: like all pending work, it is
/// done when something is observed. In a trace it is an output of the program.
#pragma once
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "gradus/graph/call_context.h"
#include "gradus/graph/tensor.h"
#include "gradus/ops/number_or_tensor.h"

namespace gradus {

namespace detail::inline rooms {
struct VariableCell;
}  // namespace detail::inline rooms
class VariableElements;

/// The combination of the values that several replicas assign. none: assigning on replicas is an error.
enum class Aggregation { none, mean, sum };
/// Options of Variable.
struct VariableOptions {
  bool trainable = true;                        // trainable_variables() lists it
  Aggregation aggregation = Aggregation::none;  // used when several replicas assign it
};

/// A named cell that holds a Tensor. Moving keeps the cell's identity; copying makes a new cell.
class Variable {
 public:
  /// A cell with this first value, which fixes dtype and shape.
  explicit Variable(const Tensor& initial, std::string name = {}, VariableOptions options = {});
  /// A new cell with the same value. Explicit, so that `for (Variable v : variables)` does not compile.
  explicit Variable(const Variable& other);
  Variable(Variable&& other) noexcept;
  Variable& operator=(const Tensor& value) = delete;  // assign(value)
  ~Variable();

  /// Reads the value. Tapes and traces record that.
  operator Tensor() const { return value(); }
  /// Reads the value. Tapes and traces record that.
  Tensor value() const;
  /// The shape, which never changes.
  const Shape& shape() const;
  /// The dtype, which never changes.
  DType dtype() const;
  /// The name, such as "dense_1/kernel".
  const std::string& name() const;
  /// Replaces the value. InvalidArgument for another dtype or shape. Error if two threads do it at once.
  void assign(const Tensor& value);
  /// Adds to the value; else as assign().
  void assign_add(const Tensor& value);
  /// Subtracts from the value; else as assign().
  void assign_sub(const Tensor& value);
  /// The elements that subscripts name, as those of a Tensor: to be read, or to be assigned, v(all, 0).assign(t).
  VariableElements operator()(const Subscript& a, const Subscript& b = {}, const Subscript& c = {},
                              const Subscript& d = {}, const Subscript& e = {}, const Subscript& f = {},
                              const Subscript& g = {}, const Subscript& h = {}, const Subscript& i = {},
                              const Subscript& j = {}) const;
  /// The extent along `axis`, as Tensor::size.
  Extent size(int axis) const { return Extent(shape()[axis]); }
  /// True if trainable_variables() lists it. Compiled functions notice a change.
  bool trainable() const;
  /// Changes whether trainable_variables() lists it.
  void set_trainable(bool trainable);
  /// Pruning: from now on elements where `mask` is 0 are 0, whatever is assigned, and get no gradient. `mask` has the
  /// variable's shape and any type; a copy of the variable has a mask of its own with the same value. An empty Tensor
  /// removes the mask; the elements stay 0 until they are assigned. To compiled functions a changed mask is a changed
  /// value; the first mask and its removal cause a retrace. InvalidArgument for another shape, and within a traced
  /// function for the first mask and its removal.
  void set_mask(const Tensor& mask);
  /// Booleans of the variable's shape; empty if there is no mask.
  Tensor mask() const;
  /// How values that several replicas assign become one.
  Aggregation aggregation() const;
  /// Prints the value as a Tensor prints it.
  friend std::ostream& operator<<(std::ostream& out, const Variable& variable);

  // For the rooms of the library.
  void set_name(std::string name);
  /// Makes this a handle of `cell`.
  void become(const std::shared_ptr<detail::VariableCell>& cell);
  const std::shared_ptr<detail::VariableCell>& cell() const { return cell_; }

 private:
  friend struct detail::VariableCell;
  friend class Variables;
  explicit Variable(std::shared_ptr<detail::VariableCell> cell);
  std::shared_ptr<detail::VariableCell> cell_;
};

/// Elements of a Variable that subscripts name. Assigning them replaces the Variable's value by one that differs in
/// them. A program writes whole rows of the first dimensions in place, so the cost is that of the rows, not of the
/// Variable.
class VariableElements {
 public:
  /// Reads them. Tapes and traces record that.
  operator Tensor() const { return value(); }
  /// Reads them. Tapes and traces record that.
  Tensor value() const;
  /// Replaces them by `value`, which broadcasts to them; a number takes the dtype. Where an element is named several
  /// times, the last one counts. InvalidArgument for another dtype or a shape that does not broadcast. Else as
  /// Variable::assign().
  void assign(const NumberOrTensor& value) const;
  /// Adds to them; the sum where an element is named several times. Else as assign().
  void assign_add(const NumberOrTensor& value) const;
  /// Subtracts from them; else as assign_add().
  void assign_sub(const NumberOrTensor& value) const;

 private:
  friend class Variable;
  VariableElements(std::shared_ptr<detail::VariableCell> cell, std::vector<Subscript> subscripts)
      : cell_(std::move(cell)), subscripts_(std::move(subscripts)) {}
  void increase(std::string_view op, const NumberOrTensor& value, bool decreases) const;
  std::shared_ptr<detail::VariableCell> cell_;
  std::vector<Subscript> subscripts_;
};

/// An ordered list of cells, by identity; cells stay alive while listed.
class Variables {
 public:
  template <class... V>
    requires(std::same_as<std::remove_const_t<V>, Variable> && ...)
  Variables(V&... variables) {
    (add(variables), ...);
  }
  /// The number of cells.
  std::size_t size() const { return cells().size(); }
  /// The cell's own handle: it lives as long as the cell, not as this list. OutOfRange past the end.
  Variable& operator[](std::size_t i) const;
  /// By name, such as "dense_1/kernel"; an InvalidArgument lists the nearest names.
  Variable& operator[](std::string_view name) const;
  /// A cell that is in both counts once.
  Variables operator+(const Variables& more) const;
  /// The Variables whose name `keep` accepts, in the same order.
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
  const std::vector<std::shared_ptr<detail::VariableCell>>& cells() const {
    if (later_) find_out();
    return cells_;
  }
  /// The position of a cell; -1 if it is not listed.
  std::ptrdiff_t find(const detail::VariableCell& cell) const;
  /// A list that is made when it is first read. C++ evaluates arguments in any order, so in tape.gradient(loss(y,
  /// model(x)), model.trainable_variables()) the model may be built after it was asked.
  static Variables later(std::function<Variables()> list);

 private:
  void find_out() const;
  mutable std::vector<std::shared_ptr<detail::VariableCell>> cells_;
  mutable std::function<Variables()> later_;
};

namespace detail::inline rooms {

/// While it lives, it receives every reading of a Variable on its thread. So a tape learns which Variables it watches.
class ReadListener {
 public:
  ReadListener() { join(); }
  virtual ~ReadListener();
  ReadListener(const ReadListener&) = delete;
  virtual void on_read(VariableCell& cell, const Tensor& value) = 0;
  /// True if the listener knows `value` from elsewhere, such as from an assignment to the Variable.
  virtual bool knows(const Tensor& value) const = 0;
  /// A compiled function that is called here reads it: its value is no node of this thread.
  virtual void on_read_within(VariableCell&) {}

  /// Tells the listeners and gives the reader its value: a node of its own if a listener knows that one.
  static Tensor tell(VariableCell& cell, Tensor value);
  static void tell_within(VariableCell& cell);
  /// True if there is a listener.
  static bool is_there() { return CallContext::here().listener != nullptr; }

 protected:
  /// From now on it is the innermost listener of this thread.
  void join() { outer_ = std::exchange(CallContext::here().listener, this); }
  /// From now on it hears of nothing.
  void leave();

 private:
  ReadListener* outer_ = nullptr;
};

}  // namespace detail::inline rooms

}  // namespace gradus
