"""The comparisons of a query as a graph, and as a picture: streams are boxes, arrows point up."""
