/// DLPack in both directions and of both versions: the same memory, types, strides and devices, and owners that are
/// released once.
#include "gradus/interop/dlpack.h"
#include <gtest/gtest.h>
#include <memory>
#include <thread>
#include "gradus/function/variable.h"
#include "gradus/interop/borrow.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "tests/errors.h"
#include "tests/interop/foreign_memory.h"
#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#endif

namespace gradus::dlpack_test {
namespace {

/// A producer that counts calls of its deleter.
template <class M> struct Producer {
  std::vector<float> values = std::vector<float>(4096, 1);
  std::vector<std::int64_t> shape{3, 4}, strides{4, 1};
  int deleted = 0;
  M managed{};
  Producer() {
    if constexpr (dlpack::is_versioned<M>) managed.version = {1, 0};
    managed.manager_ctx = this;
    managed.deleter = [](M* self) { ++static_cast<Producer*>(self->manager_ctx)->deleted; };
    managed.dl_tensor = {.data = values.data(),
                         .device = {dlpack::processor, 0},
                         .ndim = 2,
                         .dtype = {dlpack::floating, 32, 1},
                         .shape = shape.data(),
                         .strides = strides.data(),
                         .byte_offset = 0};
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  }
};

template <class M> class DLPack : public testing::Test {};
using Versions = testing::Types<dlpack::Managed, dlpack::ManagedVersioned>;
TYPED_TEST_SUITE(DLPack, Versions);

TYPED_TEST(DLPack, IsTakenWithoutACopy) {
  Producer<TypeParam> producer;
  producer.managed.dl_tensor.byte_offset = 8;
  {
    Tensor x = from_dlpack(&producer.managed);
    EXPECT_EQ(x.span<float>().data(), producer.values.data() + 2);
    Variable kept(x, "kept");
    Tensor later = x + 1;
    x = {};
    EXPECT_EQ(producer.deleted, 0);
    EXPECT_EQ(later.to_vector<float>()[11], 14);
    EXPECT_EQ(reduce_sum(kept).item(), 2 * 12 + 66);
  }
  EXPECT_EQ(producer.deleted, 1);
  Producer<TypeParam> by_columns;
  by_columns.strides = {1, 3};
  {
    const Tensor x = from_dlpack(&by_columns.managed);
    EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11}));
  }
  EXPECT_EQ(by_columns.deleted, 1);
  Producer<TypeParam> compact;
  compact.managed.dl_tensor.strides = nullptr;
  compact.managed.deleter = nullptr;
  const Tensor row_major = from_dlpack(&compact.managed);
  EXPECT_EQ(row_major.to_vector<float>()[7], 7);
}

TYPED_TEST(DLPack, IsGivenWithoutACopy) {
  TypeParam* given = nullptr;
  const float* address = nullptr;
  {
    const Tensor x = from_values(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3}) * 2;
    given = to_dlpack<TypeParam>(x);
    address = x.span<float>().data();
  }
  const dlpack::Tensor& told = given->dl_tensor;
  EXPECT_EQ(told.data, address);
  EXPECT_EQ(told.ndim, 2);
  EXPECT_EQ(std::vector<std::int64_t>(told.shape, told.shape + 2), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(std::vector<std::int64_t>(told.strides, told.strides + 2), (std::vector<std::int64_t>{3, 1}));
  EXPECT_EQ(static_cast<const float*>(told.data)[5], 12);
  if constexpr (dlpack::is_versioned<TypeParam>) {
    EXPECT_EQ(given->version.major, 1u);
    EXPECT_EQ(given->flags, dlpack::read_only);
  }
  std::thread([given] { given->deleter(given); }).join();
}

TYPED_TEST(DLPack, RoundTripOfEveryDtype) {
  for (const DType dtype : all_dtypes) {
    const Tensor x = cast(constant({1, 0, 1, 1, 0, 1}), dtype);
    const Tensor back = from_dlpack(to_dlpack<TypeParam>(x), {.padded = true});
    EXPECT_TRUE(bitwise_equal(back, x)) << dtype;
    EXPECT_EQ(back.host(), x.host()) << dtype;
  }
  const Tensor scalar = from_dlpack(to_dlpack<TypeParam>(constant(3.0)), {.padded = true});
  EXPECT_EQ(scalar.item(), 3);
  EXPECT_EQ(from_dlpack(to_dlpack<TypeParam>(zeros({0, 5}))).shape(), (Shape{0, 5}));
}

TYPED_TEST(DLPack, RefusedTensorsAreReleasedOnce) {
  const auto refuses = [](auto change, std::initializer_list<const char*> parts) {
    Producer<TypeParam> producer;
    change(producer);
    expect_error<InvalidArgument>([&] { from_dlpack(&producer.managed); }, parts);
    EXPECT_EQ(producer.deleted, 1);
  };
  using P = Producer<TypeParam>;
  refuses([](P& p) { p.managed.dl_tensor.dtype = {dlpack::complex, 64, 1}; }, {"complex numbers of 64 bits", "bf16"});
  refuses([](P& p) { p.managed.dl_tensor.dtype = {dlpack::floating, 32, 4}; }, {"4 lanes"});
  refuses([](P& p) { p.managed.dl_tensor.dtype = {dlpack::floating, 8, 1}; }, {"floats of 8 bits"});
  refuses([](P& p) { p.managed.dl_tensor.dtype = {10, 8, 1}; }, {"kind 10"});
  refuses([](P& p) { p.managed.dl_tensor.device = {dlpack::cuda, 1}; }, {"CUDA device 1", "cannot read"});
  refuses([](P& p) { p.managed.dl_tensor.device = {7, 0}; }, {"kind 7"});
  refuses([](P& p) { p.managed.dl_tensor.ndim = 9; }, {"9 axes"});
  refuses([](P& p) { p.shape[0] = -1; }, {"-1 elements"});
  refuses([](P& p) { p.managed.dl_tensor.data = nullptr; }, {"null"});
  refuses(
      [](P& p) {
        p.strides = {5, 1};
        p.managed.dl_tensor.strides = p.strides.data();
      },
      {"gaps"});
  refuses([](P& p) { p.managed.dl_tensor.byte_offset = 2; }, {"multiple of 4"});
  if constexpr (dlpack::is_versioned<TypeParam>) refuses([](P& p) { p.managed.version.major = 2; }, {"version 2.0"});
  expect_error<InvalidArgument>([] { from_dlpack(static_cast<TypeParam*>(nullptr)); }, {"null"});
}

#if __has_include(<dlpack/dlpack.h>)
TEST(DLPackHeader, HasTheLayoutThatIsDeclared) {
  static_assert(sizeof(DLTensor) == sizeof(dlpack::Tensor));
  static_assert(offsetof(DLTensor, byte_offset) == offsetof(dlpack::Tensor, byte_offset));
  static_assert(offsetof(DLTensor, dtype) == offsetof(dlpack::Tensor, dtype));
  static_assert(offsetof(DLManagedTensor, deleter) == offsetof(dlpack::Managed, deleter));
  static_assert(kDLCPU == dlpack::processor && kDLBfloat == dlpack::bfloat && kDLFloat == dlpack::floating);
  const Tensor x = constant({1.0, 2.0});
  DLManagedTensor* const given = to_dlpack<DLManagedTensor>(x);
  EXPECT_EQ(given->dl_tensor.dtype.bits, 32);
  EXPECT_TRUE(bitwise_equal(from_dlpack(given, {.padded = true}), x));
}
#endif

}  // namespace
}  // namespace gradus::dlpack_test
