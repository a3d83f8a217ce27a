/// The manifest of docs/distribution.md: its variables are those that a cluster is read from, and make one.
#include <gtest/gtest.h>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include "gradus/distribute/cluster.h"

namespace gradus::kubernetes_test {
namespace {

/// What the first block of YAML in the page says.
std::string manifest() {
  std::ostringstream all;
  all << std::ifstream(GRADUS_DOCS "/distribution.md").rdbuf();
  const std::string page = all.str();
  const std::size_t begin = page.find("```yaml\n"), end = page.find("\n```", begin);
  EXPECT_NE(begin, std::string::npos);
  return page.substr(begin, end - begin);
}

/// Variables of the container, with their values where the manifest has them.
std::map<std::string, std::string> variables() {
  std::map<std::string, std::string> all;
  std::istringstream lines(manifest());
  std::string line, last;
  bool is_inside = false;
  while (std::getline(lines, line)) {
    if (line.find(" env:") != std::string::npos) is_inside = true;
    else if (line.find("volumeMounts:") != std::string::npos) is_inside = false;
    if (!is_inside) continue;
    if (const auto name = line.find("- name: "); name != std::string::npos) all[last = line.substr(name + 8)] = "";
    if (const auto value = line.find(" value: \""); value != std::string::npos)
      all[last] = line.substr(value + 9, line.rfind('"') - value - 9);
  }
  return all;
}

TEST(Kubernetes, TheManifestMakesACluster) {
  std::map<std::string, std::string> given = variables();
  ASSERT_EQ(given.size(), 5u);
  given.at("RANK") = "3";  // by Kubernetes
  given.at("GRADUS_TOKEN") = "secret";
  std::set<std::string> asked;
  const Cluster cluster = cluster_of([&](std::string_view name) {
    asked.emplace(name);
    const auto found = given.find(std::string(name));
    return found == given.end() ? std::string() : found->second;
  });
  for (const auto& [name, value] : given) EXPECT_TRUE(asked.contains(name)) << name << " is read by nobody";
  EXPECT_EQ(cluster.rank, 3);
  EXPECT_EQ(cluster.ranks(), 4);
  EXPECT_EQ(cluster.meeting().to_string(), "trainer-0.trainer:29500");
  EXPECT_EQ(cluster.credentials.token, "secret");
  EXPECT_NE(manifest().find("completions: 4"), std::string::npos);
}

}  // namespace
}  // namespace gradus::kubernetes_test
