/// Implementation of ONNX's ops: one row per op in the table of its family, gradus/onnx/ops_<family>.cpp. To add an op,
/// add a row; to add a family, add a file with a table. Nothing else lists ops.
///
///   const Table table{
///       {"Elu", {6, 22}, [](const Call& c) { return elu(c[0], c.number("alpha", 1)); }},
///       {"Clip", {6, 11, 12, 13}, clip},                        // a function below it, where it is more than a line
///       {"Momentum", {1}, momentum, "ai.onnx.preview.training"},  // of another domain than ONNX's own
///       {"GRU", {7, 14, 22}, rounded_once(gated)},                // more than one step of arithmetic
///   };
///
/// The numbers are the opsets in which the op changed (onnx.ai/onnx/operators has them), as far as the row knows them:
/// all up to the newest. `c.version()` is the one in force. So `c.version() >= 13 ? input : attribute` selects a
/// default, or an attribute that became an input. A change that only adds dtypes needs no code.
///
/// A row must not observe tensors other than by c.integers_of and its like (a model may be traced), nor trust
/// attributes: c.require reports node, op and reason. Errors of ops get node and op from the frame. Results are in the
/// order of the node's outputs; unwanted ones (c.wants(i)) may be left out or empty.
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

/// One application of an op as its row sees it: inputs, attributes, wanted outputs.
class Call {
 public:
  Call(const NodeDefinition& node, Tensors inputs, const Scope& scope)
      : node_(node), inputs_(std::move(inputs)), scope_(scope) {}

  // Inputs. An optional one that is not given is absent, wherever it stands.
  /// Number of inputs, including absent ones.
  int inputs() const { return static_cast<int>(inputs_.size()); }
  bool has(int input) const;
  /// An input. DataError if it is absent.
  const Tensor& operator[](int input) const;
  /// The input, or an empty Tensor.
  Tensor optional(int input) const { return has(input) ? (*this)[input] : Tensor(); }
  const Tensors& all_inputs() const { return inputs_; }

  /// The values of an integer (or boolean) input on the host, as shapes, axes and pads need them. Within a trace they
  /// must follow from constants, initializers and known shapes; else an error says so.
  std::vector<std::int64_t> integers_of(int input) const;
  std::int64_t integer_of(int input) const;
  std::vector<double> numbers_of(int input) const;
  double number_of(int input) const;
  /// The values as extents. They may be symbolic if they were computed from the shape of a symbolic tensor.
  Shape shape_of(int input) const;

  // Typed attributes. DataError for an absent one without a default, and for one of another type.
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

  /// An attribute that became input `input` later; empty if neither is given. An empty list counts as given.
  std::optional<std::vector<std::int64_t>> integers_of(int input, std::string_view attribute) const;
  /// An axis of a tensor of this rank, in [0, rank). DataError otherwise.
  int axis(std::int64_t given, int rank) const;
  std::vector<int> axes(const std::vector<std::int64_t>& given, int rank) const;

  // The node.
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

/// A row that takes several steps. Inputs of floats narrower than f32 are passed in f32, and floating results are
/// rounded once, and so are gradients. Result k has the dtype of input like[k] (0 if that is absent) or, with
/// as_computed, the one that the row gives it; the last number holds for all further results. Steering inputs are
/// passed as they are.
RowFunction rounded_once(RowFunction run, std::vector<int> like = {0});
inline constexpr int as_computed = -1;
/// x in the dtype of computing.
Tensor wide(const Tensor& x);

struct Row {
  std::string_view op;
  std::vector<int> versions;
  RowFunction run;
  std::string_view domain = "";
  /// Draws random numbers: never evaluated at tracing time.
  bool random = false;
  /// Steering inputs (c.numbers_of reads them). A floating initializer that is nothing else is a constant, not a
  /// Variable.
  std::vector<int> steering = {};
};

/// A family of rows, which every model finds once it is constructed.
class Table {
 public:
  Table(std::initializer_list<Row> rows);

 private:
  std::vector<Row> rows_;
};

/// The row of an op; null if there is none.
const Row* find_row(std::string_view domain, std::string_view op);
/// All rows, by domain and name.
std::vector<const Row*> all_rows();

}  // namespace gradus::onnx
