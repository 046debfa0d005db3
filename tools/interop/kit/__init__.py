"""The test kit from other languages: the helpers of docs/testkit/other-languages.md, each with one test."""
