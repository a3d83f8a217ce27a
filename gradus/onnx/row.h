/// How an ONNX op is computed: one row in the table of its family, gradus/onnx/ops_<family>.cpp. To add an op, add a
/// row; to add a family, add a file with a table. Nothing else lists ops.
///
///   const Table table{
///       {"Elu", {6, 22}, [](const Call& c) { return elu(c[0], c.number("alpha", 1)); }},
///       {"Clip", {6, 11, 12, 13}, clip},                        // a function below it, where it is more than a line
///       {"Momentum", {1}, momentum, "ai.onnx.preview.training"},  // of another domain than ONNX's own
///       {"GRU", {7, 14, 22}, rounded_once(gated)},                // more than one step of arithmetic
///   };
///
/// The numbers are the opsets in which the op changed (onnx.ai/onnx/operators has them), as far as the row knows them:
/// all up to the newest. `c.version()` is the one that holds, so `c.version() >= 13 ? input : attribute` is how a
/// default or an attribute that became an input is told apart. A change that only adds dtypes needs no code.
///
/// What a row must not do: observe tensors other than by c.integers_of and its like (a model may be traced), or trust
/// attributes: c.require says node, op and reason. Errors of ops are given node and op by the frame. Results are in the
/// order of the node's outputs; those that nobody asked for (c.wants(i)) may be left out or empty.
#pragma once
#include <functional>
#include <initializer_list>
#include <string_view>
#include <vector>
#include "gradus/onnx/model_file.h"

namespace gradus::onnx {

class Scope;

/// The outputs of a node; one Tensor is a list of one.
class Results : public Tensors {
 public:
  Results(Tensor one) { push_back(std::move(one)); }
  Results(Tensors all) : Tensors(std::move(all)) {}
  Results(std::initializer_list<Tensor> all) : Tensors(all) {}
};

/// One application of an op as its row sees it: inputs, attributes, what is wanted.
class Call {
 public:
  Call(const NodeDefinition& node, Tensors inputs, const Scope& scope)
      : node_(node), inputs_(std::move(inputs)), scope_(scope) {}

  // Inputs. One that is optional and not given is absent, wherever it stands.
  /// How many are named, absent ones among them included.
  int inputs() const { return static_cast<int>(inputs_.size()); }
  bool has(int input) const;
  /// DataError if it is absent.
  const Tensor& operator[](int input) const;
  /// The input, or an empty Tensor.
  Tensor optional(int input) const { return has(input) ? (*this)[input] : Tensor(); }
  const Tensors& all_inputs() const { return inputs_; }

  /// The values of an integer (or boolean) input on the host: what shapes, axes and pads need. Within a trace they must
  /// follow from constants, initializers and known shapes: else an error that says so.
  std::vector<std::int64_t> integers_of(int input) const;
  std::int64_t integer_of(int input) const;
  std::vector<double> numbers_of(int input) const;
  double number_of(int input) const;
  /// The same as extents, which may be symbolic where they were computed from the shape of a symbolic tensor.
  Shape shape_of(int input) const;

  // Attributes, typed. Without a default an absent one is a DataError, as is one of another type.
  bool has_attribute(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  bool flag(std::string_view name, bool otherwise = false) const { return integer(name, otherwise) != 0; }
  double number(std::string_view name) const;
  double number(std::string_view name, double otherwise) const;
  std::string word(std::string_view name, std::string_view otherwise) const;
  std::vector<std::int64_t> integers(std::string_view name) const;
  std::vector<std::int64_t> integers(std::string_view name, std::vector<std::int64_t> otherwise) const;
  std::vector<double> numbers(std::string_view name, std::vector<double> otherwise) const;
  std::vector<std::string> words(std::string_view name, std::vector<std::string> otherwise) const;
  const Tensor& tensor(std::string_view name) const;
  const GraphDefinition& graph(std::string_view name) const;
  DType dtype(std::string_view name, DType otherwise) const;

  /// What was an attribute at first and became input `input` later; nothing if neither is given. An empty list counts.
  std::optional<std::vector<std::int64_t>> integers_of(int input, std::string_view attribute) const;
  /// An axis of a tensor of this rank, in [0, rank). DataError otherwise.
  int axis(std::int64_t given, int rank) const;
  std::vector<int> axes(const std::vector<std::int64_t>& given, int rank) const;

  // What the node is.
  int version() const { return node_.version; }
  int outputs() const { return static_cast<int>(node_.outputs.size()); }
  bool wants(int output) const {
    return output < outputs() && !node_.outputs[static_cast<std::size_t>(output)].empty();
  }
  const NodeDefinition& node() const { return node_; }
  const Scope& scope() const { return scope_; }
  /// The outputs of a graph among the attributes, which sees the values around the node.
  Tensors run(const GraphDefinition& body, In inputs) const;

  template <class... Parts> [[noreturn]] void fail(const Parts&... parts) const { throw DataError(text(parts...)); }
  template <class... Parts> void require(bool ok, const Parts&... parts) const {
    gradus::require<DataError>(ok, parts...);
  }

 private:
  const Attribute* find(std::string_view name, Attribute::Kind kind) const;
  const Attribute& get(std::string_view name, Attribute::Kind kind) const;
  const NodeDefinition& node_;
  Tensors inputs_;
  const Scope& scope_;
};

using RowFunction = std::function<Results(const Call&)>;

/// A row that takes several steps: its inputs of floats narrower than f32 come to it in f32, and its floating results
/// are rounded once, so that gradients are too. Result k has the dtype of input like[k] (0 where that is absent), or,
/// of as_computed, the one that the row gives it; the last number holds for all results from there on. What steers the
/// op comes as it is.
RowFunction rounded_once(RowFunction run, std::vector<int> like = {0});
inline constexpr int as_computed = -1;
/// x in the dtype that is computed in.
Tensor wide(const Tensor& x);

struct Row {
  std::string_view op;
  std::vector<int> versions;
  RowFunction run;
  std::string_view domain = "";
  /// Draws random numbers: never computed once and for all while a model is traced.
  bool random = false;
  /// Inputs that steer the op (c.numbers_of reads them): a floating initializer that is nothing else is a constant, not
  /// a Variable.
  std::vector<int> steering = {};
};

/// A family of rows, which every model finds from its construction on.
class Table {
 public:
  Table(std::initializer_list<Row> rows);

 private:
  std::vector<Row> rows_;
};

/// Null if there is none.
const Row* find_row(std::string_view domain, std::string_view op);
/// All of them, by domain and name.
std::vector<const Row*> all_rows();

}  // namespace gradus::onnx
