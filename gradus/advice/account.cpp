/// The sentence that stands above the table of levers.
#include "gradus/advice/account.h"
#include <algorithm>
#include <array>
#include "gradus/advice/words.h"

namespace gradus {
namespace {

using advice_words::percent;

constexpr double least_share = 0.01;  // smaller shares are not mentioned

}  // namespace

std::string account_of(const ProfileReport& report) {
  const double all = report.seconds - report.compile;  // compiling happens once
  if (all <= 0) return {};
  std::array<std::pair<double, const char*>, 4> parts{{{report.compute, "computes"},
                                                       {report.input_wait, "waits for input"},
                                                       {report.communication, "waits for other processes"},
                                                       {report.host, "is other C++"}}};
  std::ranges::stable_sort(parts, std::greater<>(), &std::pair<double, const char*>::first);
  std::string account = "of the time of a step ";
  for (const auto& [seconds, name] : parts)
    if (&name == &parts[0].second || seconds >= least_share * all)
      account += text(&name == &parts[0].second ? "" : ", ", percent(seconds / all), " ", name);
  if (parts[0].first > report.input_wait) return account;
  const auto stage = std::ranges::find(report.rows, ProfileKind::stage, &ProfileRow::kind);  // rows: dearest first
  const std::string name = stage == report.rows.end() ? "the data set" : text("`", stage->name, "`");
  return text(account, "; so levers of the data come first. Most of that wait is for ", name,
              ", and no lever makes its work for each element less: let it do less");
}

}  // namespace gradus
