/// The codes of ONNX's element types.
#include <array>
#include "gradus/onnx/model_file.h"

namespace gradus::onnx {
namespace {

struct TypeCode {
  std::int64_t code;
  std::string_view name;  // ours, of those that we have
};
constexpr TypeCode type_codes[] = {
    {1, "f32"},      {2, "u8"},           {3, "i8"},          {4, "u16"},     {5, "i16"},        {6, "i32"},
    {7, "i64"},      {8, "string"},       {9, "bool"},        {10, "f16"},    {11, "f64"},       {12, "u32"},
    {13, "u64"},     {14, "complex64"},   {15, "complex128"}, {16, "bf16"},   {17, "f8_e4m3fn"}, {18, "f8_e4m3fnuz"},
    {19, "f8_e5m2"}, {20, "f8_e5m2fnuz"}, {21, "u4"},         {22, "i4"},     {23, "f4_e2m1"},   {24, "f8_e8m0"},
    {25, "u2"},      {26, "i2"},          {27, "f6_e2m3"},    {28, "f6_e3m2"}};

}  // namespace

DType dtype_of_code(std::int64_t code) {
  for (const TypeCode& known : type_codes) {
    if (known.code != code) continue;
    for (const DType dtype : all_dtypes)
      if (name_of(dtype) == known.name) return dtype;
    throw Unsupported(text("type ", known.name));
  }
  throw DataError(text("element type ", code, " is none of ONNX"));
}

std::int64_t code_of(DType dtype) {
  for (const TypeCode& known : type_codes)
    if (known.name == name_of(dtype)) return known.code;
  throw InternalError(text("ONNX has no type for ", dtype));
}

}  // namespace gradus::onnx
