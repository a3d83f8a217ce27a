/// What rank 1 remembers of commits, and what it answers to those that ask.
#include "gradus/distribute/membership/commit_witness.h"
#include <gtest/gtest.h>
#include <thread>
#include "tests/errors.h"

namespace gradus::commit_witness_test {
namespace {

using namespace std::chrono_literals;

std::string answer_to(CommitWitness& witness, std::string_view question) {
  std::string given = "nothing";
  witness.ask(1, question, [&](std::string_view answer) { given = answer; });
  return given;
}

TEST(CommitWitness, WhoAsksHearsOfTheLastCommit) {
  CommitWitness witness(3);
  EXPECT_TRUE(witness.note(1));
  EXPECT_TRUE(witness.note(2));
  EXPECT_EQ(CommitWitness::decided(answer_to(witness, CommitWitness::question(2))), 2u);
}

TEST(CommitWitness, NothingIsCommittedAfterSomebodyHasAsked) {
  CommitWitness witness(3);
  EXPECT_TRUE(witness.note(1));
  EXPECT_NE(answer_to(witness, CommitWitness::greeting()), "");
  EXPECT_TRUE(witness.note(2));  // a greeting asks for nothing
  answer_to(witness, CommitWitness::question(2));
  EXPECT_FALSE(witness.note(3));
  EXPECT_TRUE(witness.note(2));  // it holds already
  EXPECT_EQ(witness.close(), 2u);
}

TEST(CommitWitness, WaitsForAllThatMayAsk) {
  CommitWitness witness(4);
  answer_to(witness, CommitWitness::question(2));
  answer_to(witness, CommitWitness::question(0));  // knows itself what it has decided
  const auto begin = std::chrono::steady_clock::now();
  witness.wait_until_asked(in(30ms));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 30ms);
  std::thread asks([&] { answer_to(witness, CommitWitness::question(3)); });
  witness.wait_until_asked(in(60s));
  asks.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
}

TEST(CommitWitness, QuestionsThatAreNoneChangeNothing) {
  CommitWitness witness(3);
  for (const std::string_view question :
       {"", "{", "[]", "null", "{}", R"({"kind": 1})", R"({"kind": "decide"})", R"({"kind": "last commit"})",
        R"({"kind": "last commit", "rank": "2"})", R"({"kind": "last commit", "rank": 3})",
        R"({"kind": "last commit", "rank": -1})", R"({"kind": "last commit", "rank": 1e300})", "\xff\xfe"}) {
    const std::string answer = answer_to(witness, question);
    expect_says(answer, "\"failed\"");
    expect_says(error_of<DataError>([&] { CommitWitness::decided(answer); }), "`decided` is missing");
  }
  EXPECT_TRUE(witness.note(1));
  for (const std::string_view answer : {"", "7", R"({"decided": -1})", R"({"decided": 1.5})", R"({"decided": "1"})"})
    EXPECT_NE(error_of<DataError>([&] { CommitWitness::decided(answer); }), "");
}

}  // namespace
}  // namespace gradus::commit_witness_test
