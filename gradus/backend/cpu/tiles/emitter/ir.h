/// Small helpers for writing IR: addresses, vectors with masks, loops that carry values.
#pragma once
#include <llvm/IR/IRBuilder.h>
#include <vector>

namespace gradus::cpu_backend {

using V = llvm::Value*;
using Builder = llvm::IRBuilder<>;

inline V number(Builder& b, int64_t n) { return b.getInt64(static_cast<uint64_t>(n)); }
inline V at(Builder& b, V base, V bytes) { return b.CreateGEP(b.getInt8Ty(), base, bytes); }
inline V at(Builder& b, V base, int64_t bytes) { return bytes ? at(b, base, number(b, bytes)) : base; }

/// The i-th 64-bit field of a structure.
V field(Builder&, V structure, int index);
/// Lanes below `count`, which may be any i64.
V first_lanes(Builder&, V count, unsigned lanes);
/// Lanes outside the mask (if any) are zero, and their memory is not touched.
V load(Builder&, llvm::Type* vector, V address, V mask = nullptr);
void store(Builder&, V value, V address, V mask = nullptr);
/// Into the first-level cache, or the second.
void prefetch(Builder&, V address, unsigned level, bool to_write = false);
llvm::BasicBlock* new_block(Builder&, const char* name);

/// Runs `body` while `count` > 0, which it must be at first, lessening it by `step`, over carried values.
/// The loop is one block if the body is.
template <class Body> std::vector<V> repeat(Builder& b, V count, int64_t step, const std::vector<V>& start, Body body) {
  auto *before = b.GetInsertBlock(), *inside = new_block(b, "turn"), *done = new_block(b, "after");
  b.CreateBr(inside);
  b.SetInsertPoint(inside);
  auto* left = b.CreatePHI(b.getInt64Ty(), 2);
  left->addIncoming(count, before);
  std::vector<llvm::PHINode*> carried;
  for (V v : start) {
    carried.push_back(b.CreatePHI(v->getType(), 2));
    carried.back()->addIncoming(v, before);
  }
  const std::vector<V> next = body(static_cast<V>(left), std::vector<V>(carried.begin(), carried.end()));
  V less = b.CreateSub(left, number(b, step));
  left->addIncoming(less, b.GetInsertBlock());
  for (std::size_t i = 0; i < next.size(); ++i) carried[i]->addIncoming(next[i], b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpSGT(less, number(b, 0)), inside, done);
  b.SetInsertPoint(done);
  return next;  // these values are the last turn's
}

/// The values of then() if the condition holds, else `otherwise`.
template <class Then> std::vector<V> choose(Builder& b, V condition, const std::vector<V>& otherwise, Then then) {
  auto *before = b.GetInsertBlock(), *yes = new_block(b, "yes"), *done = new_block(b, "done");
  b.CreateCondBr(condition, yes, done);
  b.SetInsertPoint(yes);
  const std::vector<V> given = then();
  auto* after = b.GetInsertBlock();
  b.CreateBr(done);
  b.SetInsertPoint(done);
  std::vector<V> values;
  for (std::size_t i = 0; i < given.size(); ++i) {
    auto* value = b.CreatePHI(given[i]->getType(), 2);
    value->addIncoming(otherwise[i], before);
    value->addIncoming(given[i], after);
    values.push_back(value);
  }
  return values;
}

/// repeat() for a `count` that may be 0 at first.
template <class Body>
std::vector<V> repeat_if_any(Builder& b, V count, int64_t step, const std::vector<V>& start, Body body) {
  return choose(b, b.CreateICmpSGT(count, number(b, 0)), start, [&] { return repeat(b, count, step, start, body); });
}

/// Emits then(), otherwise() on either side of a condition; neither gives a value.
template <class Then, class Otherwise> void branch(Builder& b, V condition, Then then, Otherwise otherwise) {
  auto *yes = new_block(b, "yes"), *no = new_block(b, "no"), *done = new_block(b, "done");
  b.CreateCondBr(condition, yes, no);
  b.SetInsertPoint(yes);
  then();
  b.CreateBr(done);
  b.SetInsertPoint(no);
  otherwise();
  b.CreateBr(done);
  b.SetInsertPoint(done);
}

}  // namespace gradus::cpu_backend
