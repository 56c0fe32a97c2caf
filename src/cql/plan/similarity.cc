#include "cql/plan/similarity.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "model/value.h"

namespace helenus::cql {

using base::Bytes;
using base::ByteView;
using model::DataType;
using model::OptionalBytes;
using model::TypeKind;

namespace {

struct Products {
  double both = 0;   // of the one with the other
  double first = 0;  // of each with itself
  double second = 0;
  double apart = 0;  // the square of how far they are apart
};

base::Result<Products> products_of(const Bytes& a, const Bytes& b) {
  const std::vector<ByteView> x = model::split_vector(a);
  const std::vector<ByteView> y = model::split_vector(b);
  Products products;
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    TRY(const float left, model::read_float(x[i]));
    TRY(const float right, model::read_float(y[i]));
    const double first = left;
    const double second = right;
    products.both += first * second;
    products.first += first * first;
    products.second += second * second;
    products.apart += (first - second) * (first - second);
  }
  return products;
}

OptionalBytes as_float(double value) {
  return model::float_value(static_cast<float>(value));
}

QueryResult<OptionalBytes> cosine(const Function& function, Function::Arguments arguments,
                                  Moment& /*moment*/) {
  TRY(const Products products, products_of(*arguments[0], *arguments[1]));
  if (products.first == 0 || products.second == 0) {
    return invalid("Function {} doesn't support all-zero vectors.", function.name);
  }
  return as_float((1 + products.both / std::sqrt(products.first * products.second)) / 2);
}

QueryResult<OptionalBytes> euclidean(const Function& /*function*/, Function::Arguments arguments,
                                     Moment& /*moment*/) {
  TRY(const Products products, products_of(*arguments[0], *arguments[1]));
  return as_float(1 / (1 + products.apart));
}

QueryResult<OptionalBytes> dot_product(const Function& /*function*/, Function::Arguments arguments,
                                       Moment& /*moment*/) {
  TRY(const Products products, products_of(*arguments[0], *arguments[1]));
  return as_float((1 + products.both) / 2);
}

struct Similarity {
  std::string_view name;
  std::string_view full_name;
  Function::Body body;
};

constexpr Similarity kSimilarities[] = {
    {"similaritycosine", "similarity_cosine", &cosine},
    {"similarityeuclidean", "similarity_euclidean", &euclidean},
    {"similaritydotproduct", "similarity_dot_product", &dot_product},
};

const Similarity* find_similarity(std::string_view name) {
  const auto* const found = std::ranges::find(kSimilarities, name, &Similarity::name);
  return found == std::end(kSimilarities) ? nullptr : found;
}

}  // namespace

bool is_similarity(std::string_view name) {
  return find_similarity(name) != nullptr;
}

QueryResult<Function> similarity_function(std::string_view name,
                                          std::span<const ArgumentHint> hints) {
  const Similarity& similarity = *find_similarity(name);
  if (hints.size() != 2) {
    return invalid(
        "Invalid number of arguments for function system.{}(vector<float, n>, "
        "vector<float, n>)",
        similarity.full_name);
  }
  std::optional<DataType> type;
  for (const ArgumentHint& hint : hints) {
    if (!hint.type) continue;
    if (hint.type->kind() != TypeKind::vector) {
      return invalid(
          "Function system.{} requires a float vector argument, but found argument {} of type {}",
          similarity.full_name, hint.text, hint.type->to_cql());
    }
    if (type && type->dimension() != hint.type->dimension()) {
      return invalid("All arguments must have the same vector dimensions");
    }
    type = hint.type;
  }
  if (!type) {
    return invalid(
        "Cannot infer type of argument {} in call to function system.{}: use type casts to "
        "disambiguate",
        hints[0].text, similarity.full_name);
  }
  return Function{.name = std::string(similarity.full_name),
                  .arguments = {*type, *type},
                  .returns = DataType(TypeKind::float_),
                  .body = similarity.body};
}

}  // namespace helenus::cql
