/// One parameter server by questions: a push counts once and in its order, versions are kept, what is written down
/// comes back, and wrong questions get an answer.
#include "gradus/distribute/parameter_servers/parameter_store.h"
#include <gtest/gtest.h>
#include <random>
#include "gradus/distribute/parameter_servers/parameter_client.h"
#include "tests/errors.h"
#include "tests/test_directory.h"

namespace gradus::parameter_store_test {
namespace {

using namespace std::chrono_literals;

std::string bytes_of_floats(std::vector<float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

/// w - pushed, and %5 of another cell, %2.
std::string program_with(std::uint64_t cell, const std::string& spec, const std::string& update) {
  WrittenProgram made;
  made.pulled = {5};
  made.reads = made.assigns = {5, cell};
  made.pushes = {{f32, {2}}};
  using Kind = WrittenProgram::Input::Kind;
  made.inputs = {{Kind::cell, 0}, {Kind::push, 0}, {Kind::cell, 1}};
  made.graph = "%0 = input : f32[2]\n%1 = input : f32[2]\n%2 = input : " + spec + "\n%3 = subtract %0 %1 : f32[2]\n" +
               update + "return %3 %5\n";
  return made.to_bytes();
}
/// w - pushed, and how often.
std::string program() { return program_with(6, "i64[]", "%4 = constant{0x1} : i64[]\n%5 = add %2 %4 : i64[]\n"); }

ParameterClient client_of(ParameterStore& store, const std::string& sender, const std::string& run = "a run",
                          std::chrono::milliseconds timeout = 300ms) {
  auto place = std::make_shared<ParameterServerPlace>();
  place->client = in_process_client(store);
  place->name = "parameter server 0";
  place->run = run;
  place->lag = 2;
  place->timeout = timeout;
  place->heartbeat = 100ms;
  return {place, sender};
}

void begin(ParameterClient& client) {
  client.begin();
  client.add_cells(std::vector<ParameterClient::NewCell>{{5, "w", {f32, {2}}}, {6, "count", {i64, {}}}});
  client.set(5, 0, bytes_of_floats({100, 200}));
  client.set(6, 0, std::string(8, '\0'));
  client.add_program(7, program());
}

std::vector<float> pulled(ParameterClient& client, std::uint64_t version) {
  const std::string bytes = client.pull(7, version, 8);
  std::vector<float> out(2);
  std::memcpy(out.data(), bytes.data(), 8);
  return out;
}

/// While an update runs its push counts already: later ones are not ahead of it, and it is not taken a second time.
TEST(ParameterStore, PushesComeWhileOneIsApplied) {
  constexpr std::int64_t many = 1 << 21;  // the update takes some milliseconds
  const std::string large = text("f32[", many, "]");
  const std::string program = program_with(8, large, "%4 = tanh %2 : " + large + "\n%5 = exp %4 : " + large + "\n");
  ParameterStore store;
  ParameterClient client = client_of(store, "a worker", "a run", 20s),
                  other = client_of(store, "another", "a run", 20s);
  client.begin();
  client.add_cells(std::vector<ParameterClient::NewCell>{{5, "w", {f32, {2}}}, {8, "large", {f32, {many}}}});
  client.set(5, 0, bytes_of_floats({100, 200}));
  client.set(8, 0, std::string(many * sizeof(float), '\0'));
  client.add_program(7, program);
  for (std::uint64_t step = 0; step < 12; ++step) {
    client.push(step, 7, bytes_of_floats({1, 2}));
    other.push(step, 7, bytes_of_floats({1, 2}));
  }
  EXPECT_EQ(pulled(client, 12), (std::vector<float>{88, 176}));
}

/// A worker is lost when it has pushed step k, before the desk knows: another one computes k again, with the version of
/// before, while steps up to k + lag are applied.
TEST(ParameterStore, KeepsWhatAStepThatIsDoneAgainWants) {
  constexpr std::uint64_t lag = 2, step = 5;  // of client_of
  ParameterStore store;
  ParameterClient client = client_of(store, "a worker");
  begin(client);
  for (std::uint64_t each = 0; each <= step + lag; ++each) client.push(each, 7, bytes_of_floats({1, 2}));
  EXPECT_EQ(pulled(client, step + lag + 1), (std::vector<float>{92, 184}));
  EXPECT_EQ(pulled(client, step - lag), (std::vector<float>{97, 194}));
  expect_error<Unavailable>([&] { pulled(client, step - lag - 1); }, {"parameter server 0", "version 2 is gone"});
}

TEST(ParameterStore, APushCountsOnceAndInItsOrder) {
  ParameterStore store({.hold = 20ms});
  ParameterClient a = client_of(store, "a"), b = client_of(store, "b");
  begin(a);
  b.push(1, 7, bytes_of_floats({10, 10}));
  a.push(0, 7, bytes_of_floats({1, 2}));
  a.push(0, 7, bytes_of_floats({1, 2}));
  b.push(0, 7, bytes_of_floats({9, 9}));  // another worker was late with it
  b.push(1, 7, bytes_of_floats({10, 10}));
  EXPECT_EQ(pulled(a, 2), (std::vector<float>{89, 188}));
  EXPECT_EQ(pulled(a, 1), (std::vector<float>{99, 198})) << "versions before it are kept";
  EXPECT_EQ(pulled(a, 0), (std::vector<float>{100, 200}));
  a.push(2, 7, bytes_of_floats({0, 0}));
  EXPECT_EQ(pulled(a, 3), (std::vector<float>{89, 188}));
  expect_error<Unavailable>([&] { pulled(a, 4); }, {"parameter server 0", "after 4 steps", "nothing for"});
  expect_error<Unavailable>([&] { a.push(9, 7, bytes_of_floats({0, 0})); }, {"step 9", "lag by 2"});
  a.set(5, 3, bytes_of_floats({1, 1}));
  EXPECT_EQ(pulled(a, 3), (std::vector<float>{1, 1}));
  std::int64_t count = 0;
  const std::string all = a.pull(every_cell, 3, 16);
  std::memcpy(&count, all.data() + 8, 8);
  EXPECT_EQ(count, 3);
}

TEST(ParameterStore, TakesLargeValuesInPieces) {
  ParameterStore store;
  ParameterClient client = client_of(store, "a");
  client.begin();
  const std::int64_t n = 3'000'001;
  client.add_cells(std::vector<ParameterClient::NewCell>{{1, "large", {u8, {n}}}});
  std::string bytes(static_cast<std::size_t>(n), 0);
  std::minstd_rand random(1);
  for (char& each : bytes) each = static_cast<char>(random());
  client.set(1, 0, bytes);
  EXPECT_TRUE(client.pull(every_cell, 0, bytes.size()) == bytes);
}

TEST(ParameterStore, ComesBackAsItWas) {
  for (const std::uint64_t snapshot_steps : {1, 3, 100}) {
    const TestDirectory directory(text("parameter_store_", snapshot_steps));
    const ParameterStore::Options options{.checkpoints = directory.path(), .snapshot_steps = snapshot_steps};
    auto store = std::make_unique<ParameterStore>(options);
    begin(*std::make_unique<ParameterClient>(client_of(*store, "a")));
    float sum = 0;
    for (std::uint64_t step = 0; step < 8; ++step) {
      const auto number = static_cast<float>(step + 1);
      client_of(*store, text("b", step)).push(step, 7, bytes_of_floats({number, 0}));
      store.reset();  // which ends its snapshot, and removes older files
      store = std::make_unique<ParameterStore>(options);
      sum += number;
      ParameterClient after = client_of(*store, text("c", step));
      EXPECT_EQ(pulled(after, step + 1), (std::vector<float>{100 - sum, 200})) << step;
      EXPECT_EQ(pulled(after, step), (std::vector<float>{100 - sum + number, 200})) << "the version before it";
      if (step == 5) after.set(5, 6, bytes_of_floats({100 - sum, 200}));
    }
    // Another training begins anew.
    ParameterClient other = client_of(*store, "d", "another run");
    expect_error<Unavailable>([&] { pulled(other, 0); }, {"knows nothing of this training"});
    begin(other);
    EXPECT_EQ(pulled(other, 0), (std::vector<float>{100, 200}));
    store.reset();
    store = std::make_unique<ParameterStore>(options);
    ParameterClient again = client_of(*store, "e", "another run");
    EXPECT_EQ(pulled(again, 0), (std::vector<float>{100, 200}));
  }
}

/// A record that is cut off was not acknowledged; a snapshot has to be whole.
TEST(ParameterStore, NoticesDamage) {
  const TestDirectory directory("parameter_store_damaged");
  const ParameterStore::Options options{.checkpoints = directory.path(), .snapshot_steps = 2};
  const auto files = [&](const std::string& kind) {
    std::vector<std::filesystem::path> out;
    for (const auto& entry : std::filesystem::directory_iterator(directory.path()))
      if (entry.path().filename().string().starts_with(kind)) out.push_back(entry.path());
    return out;
  };
  {
    ParameterStore store(options);
    ParameterClient client = client_of(store, "a");
    begin(client);
    for (std::uint64_t step = 0; step < 3; ++step) {
      while (step == 2 && files("snapshot").empty()) std::this_thread::sleep_for(1ms);
      client.push(step, 7, bytes_of_floats({1, 1}));
    }
    EXPECT_EQ(pulled(client, 3), (std::vector<float>{97, 197}));
  }
  ASSERT_EQ(files("snapshot").size(), 1);
  ASSERT_EQ(files("log").size(), 1);
  std::filesystem::resize_file(files("log")[0], std::filesystem::file_size(files("log")[0]) - 1);
  {
    ParameterStore store(options);
    ParameterClient client = client_of(store, "a");
    EXPECT_EQ(pulled(client, 2), (std::vector<float>{98, 198}));
    client.push(2, 7, bytes_of_floats({1, 1}));
    EXPECT_EQ(pulled(client, 3), (std::vector<float>{97, 197}));
  }
  std::filesystem::resize_file(files("snapshot")[0], std::filesystem::file_size(files("snapshot")[0]) - 1);
  expect_error<DataError>([&] { ParameterStore store(options); }, {"the checkpoint of a parameter server", "damaged"});
}

TEST(ParameterStore, AnswersWrongQuestions) {
  ParameterStore store({.hold = 20ms});
  ParameterClient client = client_of(store, "a");
  begin(client);
  const auto refused = [&](auto work, const char* part) { expect_error<Unavailable>(work, {part}); };
  refused([&] { client.push(0, 8, {}); }, "no program 8");
  refused([&] { client.push(0, 7, bytes_of_floats({1})); }, "expected 8");
  refused([&] { client.set(4, 0, {}); }, "no Variable 4");
  refused([&] { client.add_program(9, "no program"); }, "a program for a parameter server");
  refused([&] { client.add_cells(std::vector<ParameterClient::NewCell>{{5, "w", {f32, {3}}}}); }, "was f32[2]");
  std::string wrong = program();
  wrong.replace(wrong.find("subtract %0 %1 : f32[2]"), 23, "subtract %0 %1 : f32[3]");
  refused([&] { client.add_program(9, wrong); }, "subtract");
  // Bytes at random, and questions that are changed at one place.
  std::minstd_rand random(3);
  MessageWriter question;
  question.integer(5).words("a run").integer(7).integer(0).integer(0).integer(8);
  const std::string right = question.take();
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = i % 2 == 0 ? right : std::string(random() % 64, 'x');
    for (std::size_t changes = 0; changes < 3 && !bytes.empty(); ++changes)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    bool has_answer = false;
    store.ask(static_cast<std::uint64_t>(i), bytes, [&](std::string_view) { has_answer = true; });
    if (!has_answer) store.left(static_cast<std::uint64_t>(i));
  }
  EXPECT_EQ(pulled(client, 0), (std::vector<float>{100, 200}));
}

}  // namespace
}  // namespace gradus::parameter_store_test
