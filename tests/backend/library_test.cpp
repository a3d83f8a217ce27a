/// Library kernels in programs against the oracle; the oracle's own kernels are the obvious loops.
#include "gradus/backend/cpu/kernels/library.h"
#include <gtest/gtest.h>
#include <cstring>
#include <random>
#include "gradus/base/thread_pool.h"
#include "gradus/ops/gather_ops.h"
#include "gradus/ops/matmul.h"
#include "tests/reference/oracle.h"
#include "tests/threads.h"

namespace gradus::library_test {
namespace {

using Numbers = std::vector<double>;

Ref<Buffer> buffer_of(const Spec& spec, const Numbers& numbers) {
  Ref<Buffer> buffer = Buffer::allocate(bytes_of(spec));
  with_type(spec.dtype, [&]<class T>(T) {
    for (std::size_t i = 0; i < numbers.size(); ++i) buffer->data<T>()[i] = static_cast<T>(numbers[i]);
  });
  return buffer;
}
Numbers numbers_of(const Spec& spec, const Ref<Buffer>& buffer) {
  Numbers numbers;
  with_type(spec.dtype, [&]<class T>(T) {
    for (std::int64_t i = 0; i < spec.shape.size(); ++i) numbers.push_back(static_cast<double>(buffer->data<T>()[i]));
  });
  return numbers;
}

/// Small whole numbers below `limit`, so that every type holds every sum exactly.
std::vector<Numbers> whole_numbers(const Graph& graph, int limit) {
  std::mt19937 random(3);
  std::vector<Numbers> inputs;
  for (int i : graph.inputs) {
    Numbers& numbers = inputs.emplace_back();
    for (std::int64_t k = 0; k < graph[i].spec.shape.size(); ++k)
      numbers.push_back(static_cast<double>(random() % static_cast<unsigned>(limit)));
  }
  return inputs;
}

struct Row {
  const char* name;
  std::string graph;
  int limit = 3;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class LibraryRows : public testing::TestWithParam<Row> {};

TEST_P(LibraryRows, AgreeWithTheOracle) {
  for (const char* type : {"f32", "f64", "i32", "i64"}) {
    std::string source = GetParam().graph;
    for (std::size_t at; (at = source.find("T[")) != std::string::npos;) source.replace(at, 1, type);
    const Graph graph = parse_graph(source);
    const auto inputs = whole_numbers(graph, GetParam().limit);
    const auto expected = reference::evaluate(graph, inputs);
    for (Tier tier : {Tier::interpreted, Tier::compiled})
      for (int threads : {1, 3}) {
        const Threads scope(threads);
        const auto program = cpu_backend::compile(graph, {.tier = tier});
        std::vector<Ref<Buffer>> in, out(graph.outputs.size());
        for (std::size_t k = 0; k < inputs.size(); ++k) in.push_back(buffer_of(graph[graph.inputs[k]].spec, inputs[k]));
        program->run(in, out);
        for (std::size_t k = 0; k < out.size(); ++k)
          EXPECT_EQ(numbers_of(graph[graph.outputs[k]].spec, out[k]), expected[k]) << type << ' ' << threads;
      }
  }
}

const Row rows[] = {
    {"Matmul",
     "%0 = input : T[5,7]\n%1 = input : T[7,33]\n"
     "%2 = matmul{transpose_a=false; transpose_b=false} %0 %1 : T[5,33]\nreturn %2\n"},
    {"MatmulTransposed",
     "%0 = input : T[7,5]\n%1 = input : T[33,7]\n"
     "%2 = matmul{transpose_a=true; transpose_b=true} %0 %1 : T[5,33]\nreturn %2\n"},
    {"MatmulBatches",
     "%0 = input : T[2,3,5,7]\n%1 = input : T[2,3,7,4]\n"
     "%2 = matmul{transpose_a=false; transpose_b=false} %0 %1 : T[2,3,5,4]\nreturn %2\n"},
    {"MatmulTall",
     "%0 = input : T[6,5,7]\n%1 = input : T[4,7]\n"
     "%2 = matmul{transpose_a=false; transpose_b=true} %0 %1 : T[6,5,4]\nreturn %2\n"},
    {"MatmulOneForAll",
     "%0 = input : T[5,7]\n%1 = input : T[6,7,4]\n"
     "%2 = matmul{transpose_a=false; transpose_b=false} %0 %1 : T[6,5,4]\nreturn %2\n"},
    {"MatmulOfNothing",
     "%0 = input : T[5,0]\n%1 = input : T[0,4]\n"
     "%2 = matmul{transpose_a=false; transpose_b=false} %0 %1 : T[5,4]\nreturn %2\n"},
    {"MatmulToNothing",
     "%0 = input : T[0,5]\n%1 = input : T[5,4]\n"
     "%2 = matmul{transpose_a=false; transpose_b=false} %0 %1 : T[0,4]\nreturn %2\n"},
    {"MatmulOfAView",
     "%0 = input : T[7]\n%1 = input : T[7,4]\n%2 = broadcast{shape=[5,7]} %0 : T[5,7]\n"
     "%3 = matmul{transpose_a=false; transpose_b=false} %2 %1 : T[5,4]\nreturn %3\n"},
    {"MatmulLarge",
     "%0 = input : T[150,64]\n%1 = input : T[64,130]\n"
     "%2 = matmul{transpose_a=false; transpose_b=false} %0 %1 : T[150,130]\nreturn %2\n"},
    {"GatherLast", "%0 = input : T[4,3]\n%1 = input : i32[5]\n%2 = gather{axis=-1} %0 %1 : T[4,5]\nreturn %2\n"},
    {"GatherMiddle",
     "%0 = input : T[4,3,2]\n%1 = input : i64[5,2]\n%2 = gather{axis=-2} %0 %1 : T[4,5,2,2]\nreturn %2\n"},
    {"GatherFirst",
     "%0 = input : T[3,400]\n%1 = input : i32[300]\n%2 = gather{axis=-2} %0 %1 : T[300,400]\nreturn %2\n"},
    {"GatherNothing", "%0 = input : T[3,4]\n%1 = input : i32[0]\n%2 = gather{axis=-2} %0 %1 : T[0,4]\nreturn %2\n"},
    {"ScatterLast",
     "%0 = input : i32[5]\n%1 = input : T[4,5]\n%2 = scatter_add{axis=-1; extent=3} %0 %1 : T[4,3]\nreturn %2\n"},
    {"ScatterFirst",
     "%0 = input : i64[50]\n%1 = input : T[50,70]\n%2 = scatter_add{axis=-2; extent=3} %0 %1 : T[3,70]\nreturn %2\n"},
    {"CheckRange", "%0 = input : i32[50]\n%1 = check_range{limit=3; labels=true} %0 : i32[50]\nreturn %1\n"},
    {"ConcatLast",
     "%0 = input : T[4,3]\n%1 = input : T[4,0]\n%2 = input : T[4,5]\n"
     "%3 = concat{axis=-1} %0 %1 %2 %0 : T[4,11]\nreturn %3\n"},
    {"ConcatFirst",
     "%0 = input : T[40,300]\n%1 = input : T[7,300]\n%2 = concat{axis=-2} %0 %1 : T[47,300]\nreturn %2\n"},
    // Rows of few bytes, of which workers get parts: 4096 bytes are no whole number of rows.
    {"ConcatOfShortRows",
     "%0 = input : T[5000,1]\n%1 = input : T[5000,2]\n%2 = concat{axis=-1} %0 %1 : T[5000,3]\nreturn %2\n"},
    {"ConcatOfRowsOfManyParts",
     "%0 = input : T[3000,4]\n%1 = input : T[3000,1]\n%2 = input : T[3000,6]\n"
     "%3 = concat{axis=-1} %0 %1 %0 %2 : T[3000,15]\nreturn %3\n"},
    {"ConcatOfNothing", "%0 = input : T[0,3]\n%1 = concat{axis=-2} %0 %0 : T[0,3]\nreturn %1\n"},
    {"CumsumLast",
     "%0 = input : T[4,30]\n%1 = cumsum{axis=-1; exclusive=false; reverse=false} %0 : T[4,30]\n"
     "%2 = cumsum{axis=-1; exclusive=true; reverse=false} %0 : T[4,30]\n"
     "%3 = cumsum{axis=-1; exclusive=false; reverse=true} %0 : T[4,30]\n"
     "%4 = cumsum{axis=-1; exclusive=true; reverse=true} %0 : T[4,30]\nreturn %1 %2 %3 %4\n"},
    {"CumsumFirst",
     "%0 = input : T[30,2,50]\n%1 = cumsum{axis=-3; exclusive=true; reverse=true} %0 : T[30,2,50]\n"
     "%2 = cumsum{axis=-3; exclusive=false; reverse=false} %0 : T[30,2,50]\nreturn %1 %2\n"},
};
INSTANTIATE_TEST_SUITE_P(Rows, LibraryRows, testing::ValuesIn(rows), [](const auto& row) { return row.param.name; });

TEST(Library, AnUnknownKernelIsAFault) { EXPECT_THROW(library_kernel("unheard of"), InternalError); }

// ---------------------------------------------------------------- data at fault

std::string message_of(const std::string& source, const Numbers& indices, int threads) {
  const Graph graph = parse_graph(source);
  std::vector<Ref<Buffer>> in, out(graph.outputs.size());
  for (int i : graph.inputs) {
    const bool is_index = graph[i].spec.dtype != f32;
    in.push_back(buffer_of(graph[i].spec,
                           is_index ? indices : Numbers(static_cast<std::size_t>(graph[i].spec.shape.size()), 1.0)));
  }
  const Threads scope(threads);
  std::string message;
  try {
    cpu_backend::compile(graph, {.tier = Tier::interpreted})->run(in, out);
  } catch (const OutOfRange& error) { message = error.what(); }
  return message;
}

TEST(DataAtFault, TheFirstIsNamedWhateverTheThreads) {
  const std::string source =
      "%0 = input : i32[20000]\n%1 = check_range{limit=10; labels=true} %0 : i32[20000]\n%2 = negative %1 : "
      "i32[20000]\n"
      "return %2\n";
  Numbers labels(20000, 3);
  labels[777] = 10;
  labels[15000] = -1;
  for (int threads : {1, 2, 3, 8})
    EXPECT_EQ(
        message_of(source, labels, threads),
        "check_range: label 10 at position 777 is outside [0, 10): labels are numbers of classes; mend the data or "
        "the number of classes");
  EXPECT_EQ(message_of(source, Numbers(20000, 9), 2), "");
}

TEST(DataAtFault, IndicesOutsideReadNothing) {
  for (double index : {-1.0, 3.0, 1e9}) {
    EXPECT_NE(
        message_of("%0 = input : f32[3,2]\n%1 = input : i64[4]\n%2 = gather{axis=-2} %0 %1 : f32[4,2]\nreturn %2\n",
                   {0, 1, index, 7}, 1)
            .find("at position 2 of the indices is outside [0, 3)"),
        std::string::npos);
    EXPECT_NE(message_of("%0 = input : i64[2]\n%1 = input : f32[2,2]\n%2 = scatter_add{axis=-2; extent=3} %0 %1 : "
                         "f32[3,2]\nreturn %2\n",
                         {0, index}, 1)
                  .find("at position 1 of the indices is outside [0, 3)"),
              std::string::npos);
  }
}

TEST(DataAtFault, NothingIsOverwrittenBeforeTheCheck) {
  const Graph graph = parse_graph(
      "%0 = input : f32[4]\n%1 = input : i32[4]\n%2 = negative %0 : f32[4]\n"
      "%3 = check_range{limit=4; labels=false} %1 : i32[4]\nreturn %2 %3\ndying %0\n");
  const auto program = cpu_backend::compile(graph);
  ASSERT_EQ(program->may_overwrite(), (std::vector<int>{0, -1}));
  const std::vector<Ref<Buffer>> in{buffer_of({f32, {4}}, {1, 2, 3, 4}), buffer_of({i32, {4}}, {0, 1, 2, 4})};
  std::vector<Ref<Buffer>> out{in[0], {}};
  EXPECT_THROW(program->run(in, out), OutOfRange);
  EXPECT_EQ(numbers_of({f32, {4}}, in[0]), (Numbers{1, 2, 3, 4}));
}

}  // namespace
}  // namespace gradus::library_test
