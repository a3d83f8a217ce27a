/// Elements of a Variable by subscripts: its value is replaced by one with other elements.
#include "gradus/function/variable.h"
#include "gradus/function/variable_cell.h"
#include "gradus/graph/context.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/subscripted.h"

namespace gradus {

VariableElements Variable::operator()(const Subscript& a, const Subscript& b, const Subscript& c, const Subscript& d,
                                      const Subscript& e, const Subscript& f, const Subscript& g, const Subscript& h,
                                      const Subscript& i, const Subscript& j) const {
  require(cell_.get() != nullptr, "this Variable has been moved from; use the one that it was moved to");
  return {cell_->shared_from_this(), given_subscripts({&a, &b, &c, &d, &e, &f, &g, &h, &i, &j})};
}

Tensor VariableElements::value() const { return Subscripted(cell_->name, cell_->handle.value(), subscripts_).read(); }

void VariableElements::assign(const NumberOrTensor& value) const {
  const Tensor before = cell_->handle.value();
  const Tensor given = value.beside(before, "assign");
  cell_->handle.assign(Subscripted(cell_->name, before, subscripts_).replaced(given));
}

void VariableElements::assign_add(const NumberOrTensor& value) const { increase("assign_add", value, false); }
void VariableElements::assign_sub(const NumberOrTensor& value) const { increase("assign_sub", value, true); }

/// On shards of a batch the context adds up what they add, elsewhere nothing.
void VariableElements::increase(std::string_view op, const NumberOrTensor& value, bool decreases) const {
  const Tensor before = cell_->handle.value(), by = value.beside(before, op);
  const Subscripted elements(cell_->name, before, subscripts_);
  Context* const context = Context::current();
  if (context && context->shards() && context->increase(*cell_, elements.spread(by), decreases)) return;
  cell_->handle.assign(elements.increased(decreases ? -by : by));
}

}  // namespace gradus
